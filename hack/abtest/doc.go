// Command abtest runs two commands in turn (A B, B A, A B, ...) and says whether they differ. hack/ab.sh
// calls it with `felix bench` built from two revisions.
//
// For every metric it prints Welch's t-test on the two sides' values, and a paired t-test on the log ratios
// of neighbouring runs. The second one cancels the slow drift of a shared machine, so the verdict is its.
//
//	abtest -n 20 -json msgs_per_s,p99_us -a ./old -b ./new -- bench fanout --fanout 10 --json
//	abtest -n 20 -metric 'send_ns/B=([0-9.]+)' -a './old -dur 1s' -b './new -dur 1s'
//	abtest -n 20 -a ./old -b ./new    # CPU seconds of the process and of the children it waited for
//
// It is not a benchmark: it measures nothing itself but CPU time, and it does not know which direction of a
// metric is the better one. Exit status: 0 also when the sides differ, 1 when a run fails, 2 for bad usage.
package main
