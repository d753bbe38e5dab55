package cli

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{name: "nothing"},
		{name: "usage", err: usagef("no stream"), status: 2, want: "felix: no stream; see 'felix pub --help'\n"},
		{name: "wrapped usage", err: fmt.Errorf("pub: %w", usagef("no stream")), status: 2, want: "felix: pub: no stream; see 'felix pub --help'\n"},
		{name: "own status", err: &statusError{exitRefused}, status: 4},
		{name: "other", err: errors.New("odd"), status: 1, want: "felix: odd; retrying does not help\n"},
		{
			name: "several", err: errors.Join(errors.New("felix: one"), fmt.Errorf("two%s", "\n")), status: 1,
			want: "felix: one; two; retrying does not help\n",
		},
		{
			name: "refused for good", err: &client.Error{Code: wire.CodeForbidden, Retry: wire.RetryFatal, Message: "no"}, status: 1,
			want: "felix: no (forbidden, fatal); retrying does not help\n",
		},
		{
			name: "no stream", err: &client.Error{Code: wire.CodeNotFound, Retry: wire.RetryAfter, Message: "no such stream"}, status: 1,
			want: "felix: no such stream (not_found, retry_after); retrying helps once there is such a stream\n",
		},
		{
			name: "refused for now", err: &client.Error{Code: wire.CodeOverloaded, Retry: wire.RetryAfter, Message: "full"}, status: 1,
			want: "felix: full (overloaded, retry_after); retrying helps\n",
		},
		{
			name: "not known", err: &client.Error{Retry: wire.RetryOutcomeUnknown, Message: "connection lost"}, status: 1,
			want: "felix: connection lost (outcome_unknown); it may or may not be stored; sending it again may repeat it\n",
		},
		{
			name: "lagged", err: &client.LaggedError{ResumeFrom: 7}, status: 1,
			want: "felix: " + oneLine(&client.LaggedError{ResumeFrom: 7}) + "; retrying helps: --from 7 goes on where it ended\n",
		},
		{
			name: "too old", err: &client.CursorError{Reason: "too_old", Requested: 1, Available: 9}, status: 1,
			want: "felix: " + oneLine(&client.CursorError{Reason: "too_old", Requested: 1, Available: 9}) + "; retrying does not help, --from 9 does\n",
		},
		{
			name: "a stranger's certificate", err: &client.ConnectError{Errs: []error{x509.UnknownAuthorityError{}}}, status: 1,
			want: "felix: " + oneLine(&client.ConnectError{Errs: []error{x509.UnknownAuthorityError{}}}) +
				"; retrying does not help, another --ca-file or --server-name does\n",
		},
		{
			name: "full disk", err: &os.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}, status: 1,
			want: "felix: write f: no space left on device; retrying helps once there is room\n",
		},
		{
			name: "no broker", err: &os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}, status: 1,
			want: "felix: connect: connection refused; retrying helps once the broker is there\n",
		},
		{name: "interrupted", err: &interruptedError{"interrupted"}, status: 1, want: "felix: interrupted\n"},
		{
			name: "an address in a list in a list", err: &client.ConnectError{Errs: []error{
				fmt.Errorf("h:1: %w", &client.ConnectError{Errs: []error{errors.New("10.0.0.1:1: no answer")}}),
			}}, status: 1,
			want: "felix: no broker can be reached: 10.0.0.1:1: no answer; retrying helps\n",
		},
		{
			name: "packages on the way", err: fmt.Errorf("describe orders: %w", &admin.Error{
				Code: admin.CodeNotFound, Retry: admin.RetryFatal, Message: "broker: stream dev/default/orders: no such stream",
			}), status: 1,
			want: "felix: describe orders: not_found: stream dev/default/orders: no such stream; retrying does not help\n",
		},
		{
			name: "a YAML file", err: errors.New(`broker: configuration f.yaml: error unmarshaling JSON: while decoding JSON: json: unknown field "lisen"`), status: 1,
			want: "felix: configuration f.yaml: unknown field \"lisen\"; retrying does not help\n",
		},
		{
			name: "HTTP for HTTPS", err: &admin.Error{Code: admin.CodeInternal, Retry: admin.RetryOutcomeUnknown, Message: "Client sent an HTTP request to an HTTPS server."}, status: 1,
			want: "felix: internal: Client sent an HTTP request to an HTTPS server.; retrying does not help, --admin https://HOST:PORT does\n",
		},
		{
			name: "a name that nobody knows", err: &net.DNSError{Name: "h", Err: "no such host", IsNotFound: true}, status: 1,
			want: "felix: lookup h: no such host; retrying helps once the name is known, and so does another address\n",
		},
		{
			name: "a file of somebody else's", err: &os.PathError{Op: "open", Path: "f", Err: syscall.EACCES}, status: 1,
			want: "felix: open f: permission denied; retrying does not help, another owner or mode of the file does\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := &cobra.Command{Use: "felix"}
			pub := &cobra.Command{Use: "pub"}
			root.AddCommand(pub)
			var out bytes.Buffer
			if status := report(&out, pub, c.err); status != c.status || out.String() != c.want {
				t.Errorf("got %d and %q\nwant %d and %q", status, out.String(), c.status, c.want)
			}
		})
	}
}
