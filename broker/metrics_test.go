package broker_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/admin"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/udp"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client"
)

// witness remembers which series have moved, over several brokers.
type witness struct {
	moved map[string]bool
	fresh map[string]bool // what a broker exports from its start
}

// anyOf leaves out the labels whose values are the users' own.
var anyOf = regexp.MustCompile(`(stream|subscription|version|revision|go_version)="[^"]*",?`)

func general(series string) string {
	s := anyOf.ReplaceAllString(series, "")
	return strings.Replace(strings.Replace(s, ",}", "}", 1), "{}", "", 1)
}

// start starts a broker that is watched: each look at its metrics is noted.
func (w *witness) start(t *testing.T, change ...func(*broker.Config)) *node {
	t.Helper()
	n := startNode(t, change...)
	for s := range n.fresh {
		w.fresh[general(s)] = true
	}
	n.note = func(s series) {
		for name, v := range s {
			if v != n.fresh[name] {
				w.moved[general(name)] = true
			}
		}
	}
	return n
}

// documented are the metrics of docs/metrics.md.
func documented(t *testing.T) (names []string) {
	t.Helper()
	b, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(felix_[a-z_]+)` \\|").FindAllStringSubmatch(string(b), -1) {
		names = append(names, m[1])
	}
	return names
}

// Every metric that is documented, and every value of its labels, moves when that
// happens which it counts. What stays as it is from the start has the right value.
func TestMetricsTellTheTruth(t *testing.T) {
	w := &witness{moved: map[string]bool{}, fresh: map[string]bool{}}
	constant := map[string]func(n *node, v float64) bool{
		"felix_build_info":                      func(_ *node, v float64) bool { return v == 1 },
		"felix_udp_receive_buffer_bytes":        func(_ *node, v float64) bool { return v > 0 },
		"felix_udp_receive_buffer_wanted_bytes": func(_ *node, v float64) bool { return v == udp.DefaultBuffer },
		"felix_udp_send_buffer_bytes":           func(_ *node, v float64) bool { return v > 0 },
		"felix_udp_send_buffer_wanted_bytes":    func(_ *node, v float64) bool { return v == udp.DefaultBuffer },
		"felix_udp_gso_enabled":                 func(n *node, v float64) bool { return (v == 1) == n.broker.Network().GSO },
		"felix_udp_gro_enabled":                 func(n *node, v float64) bool { return (v == 1) == n.broker.Network().GRO },
		"felix_certificate_expiry_timestamp_seconds": func(n *node, v float64) bool {
			return v == float64(n.certificate().Leaf.NotAfter.Unix())
		},
	}
	// A broker that is alone forwards nothing and hands nothing over. Tests of packages route
	// and server move these.
	for _, name := range []string{
		"felix_forwarded_publishes_total", "felix_forward_retries_total", "felix_forward_held_publishes",
		"felix_quorum_proposals_total", "felix_quorum_commit_seconds", "felix_quorum_store_seconds", "felix_quorum_leaderships_total",
		"felix_quorum_snapshots_total", "felix_quorum_installs_total", "felix_cluster_brokers", "felix_group_replicas",
		"felix_replica_publishes_total", "felix_replica_fetched_bytes_total", "felix_replica_sent_bytes_total", "felix_replica_broken_shards_total",
		"felix_group_unapplied_entries", "felix_groups_stuck", "felix_groups_without_leader",
	} {
		constant[name] = func(_ *node, v float64) bool { return v == 0 }
	}
	for _, s := range []string{
		`felix_publish_requests_total{result="quorum_timeout"}`, `felix_publish_requests_total{result="leadership_lost"}`,
		`felix_publish_requests_total{result="unacknowledged"}`,
		`felix_subscriptions_ended_total{reason="moved"}`, `felix_subscriptions_ended_total{reason="deposed"}`,
	} {
		w.moved[s] = true
	}
	for name, scenario := range map[string]func(*testing.T, *witness){
		"tokens": tokens, "limits": limits, "publishes": publishes, "disks": disks, "no room": noRoom,
		"end of the broker": endOfBroker, "readers": readers, "ends of readers": endsOfReaders, "bad logs": badLogs,
	} {
		t.Run(name, func(t *testing.T) { scenario(t, w) })
	}
	if t.Failed() {
		return
	}

	n := startNode(t)
	names := documented(t)
	if len(names) < 30 {
		t.Fatalf("%d metrics are documented: the table has another form", len(names))
	}
	for _, name := range names {
		if right := constant[name]; right != nil {
			for s, v := range n.fresh {
				if nameOf(s) == name && !right(n, v) {
					t.Errorf("%s is %v", s, v)
				}
			}
			continue
		}
		if !w.movedAny(name) {
			t.Errorf("%s is documented, and nothing in this test has moved it", name)
		}
	}
	for s := range w.fresh {
		if constant[nameOf(s)] == nil && !w.moved[s] {
			t.Errorf("%s is exported from the start, and nothing in this test has moved it", s)
		}
		if !slices.Contains(names, nameOf(s)) {
			t.Errorf("%s is exported and not documented", s)
		}
	}
}

func (w *witness) movedAny(name string) bool {
	for s := range w.moved {
		if nameOf(s) == name {
			return true
		}
	}
	return false
}

func (n *node) certificate() *tls.Certificate {
	n.t.Helper()
	c, err := tls.LoadX509KeyPair(n.broker.CAFile(), strings.TrimSuffix(n.broker.CAFile(), ".crt")+".key")
	if err != nil {
		n.t.Fatal(err)
	}
	return &c
}

// sign makes a token of whatever header and claims.
func sign(t *testing.T, key auth.SigningKey, alg string, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(map[string]string{"alg": alg, "typ": "JWT", "kid": key.ID}) + "." + part(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key.Private, []byte(text)))
}

func tokens(t *testing.T, w *witness) {
	n := w.start(t)
	stranger, err := auth.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger.ID = n.key.ID
	now := time.Now()
	claims := map[string]any{
		"iss": auth.Issuer, "aud": auth.AudienceBroker, "sub": "alice", "tid": tenant, "perms": []string{},
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	with := func(claim string, value any) map[string]any {
		c := maps.Clone(claims)
		c[claim] = value
		return c
	}
	for reason, try := range map[string]struct{ tenant, token string }{
		"missing":        {tenant, ""},
		"malformed":      {tenant, "x"},
		"algorithm":      {tenant, sign(t, n.key, "HS256", claims)},
		"unknown_tenant": {"nobody", n.token},
		"signature":      {tenant, sign(t, stranger, "EdDSA", claims)},
		"expired":        {tenant, sign(t, n.key, "EdDSA", with("exp", now.Add(-time.Hour).Unix()))},
		"not_yet_valid":  {tenant, sign(t, n.key, "EdDSA", with("nbf", now.Add(time.Hour).Unix()))},
		"issuer":         {tenant, sign(t, n.key, "EdDSA", with("iss", "somebody"))},
		"audience":       {tenant, sign(t, n.key, "EdDSA", with("aud", "somebody"))},
		"subject":        {tenant, sign(t, n.key, "EdDSA", with("sub", ""))},
		"tenant":         {tenant, sign(t, n.key, "EdDSA", with("tid", "other"))},
	} {
		if _, m := n.peer().auth(try.tenant, try.token); m.MessageType() != "error" {
			t.Errorf("%s: got %+v", reason, m)
		}
		n.want(series{`felix_auth_total{result="` + reason + `"}`: 1})
	}
	n.want(series{`felix_auth_total{result="ok"}`: 0, `felix_sessions_rejected_total{reason="unauthenticated"}`: 11})
	n.peer().session(n.token)
	n.dial()
	n.want(series{`felix_auth_total{result="ok"}`: 2, "felix_connections_accepted_total": 13})
	if now := n.scrape(); now["felix_connections"] < 2 {
		t.Errorf("%v connections", now["felix_connections"])
	}
	// The reason is for an operator, but not once for every attempt.
	if l := n.log.with("INFO token refused", "remote=127.0.0.1:", "reason="); len(l) == 0 || len(l) > 11 {
		t.Errorf("the log says %q", l)
	}

	// What is not Felix.
	n.peer().open([]byte("GET / HTTP/1.1\r\n\r\n"))
	rejected := func(reason string, want float64) {
		t.Helper()
		s := `felix_sessions_rejected_total{reason="` + reason + `"}`
		eventually(t, s, func() bool { return n.since(s) == want })
	}
	rejected("protocol", 1)
	n.peer().open(wire.AppendMessage(nil, &wire.Topology{}))
	rejected("unauthenticated", 12)
	if _, err := n.tryPeer("h3"); err == nil {
		t.Error("another protocol was accepted")
	}
	rejected("handshake", 1)
}

func limits(t *testing.T, w *witness) {
	for reason, limit := range map[string]func(*broker.Config){
		"connection_limit": func(c *broker.Config) { c.Limits.Connections = 1 },
		"address_limit":    func(c *broker.Config) { c.Limits.ConnectionsPerAddress = 1 },
		"auth_timeout":     func(c *broker.Config) { c.Limits.AuthTimeout = admin.Duration(50 * time.Millisecond) },
	} {
		n := w.start(t, limit)
		n.peer()
		if _, err := n.tryPeer("felix/1"); (err == nil) != (reason == "auth_timeout") {
			t.Errorf("%s: second connection: %v", reason, err)
		}
		s := `felix_sessions_rejected_total{reason="` + reason + `"}`
		eventually(t, s, func() bool { return n.scrape()[s] > 0 })
	}
}

func publishes(t *testing.T, w *witness) {
	n := w.start(t)
	n.create("memory", func(s *admin.StreamSpec) { s.Durability = "Memory" })
	n.publish(n.dial(), "demo", 3)
	n.want(series{
		`felix_publish_requests_total{result="ok"}`: 3, "felix_publish_records_total": 3, "felix_publish_bytes_total": 3 * 4 << 10,
		"felix_publish_ack_seconds": 3, "felix_log_appends_total": 3, "felix_streams": 1,
		`felix_stream_records_total{stream="dev/default/demo"}`: 3, `felix_stream_records_total{stream="dev/default/memory"}`: 0,
	})
	if got := n.since("felix_log_sync_seconds"); got < 1 || got > 10 {
		t.Errorf("%v syncs for 3 publishes", got)
	}
	n.publish(n.dial(), "memory", 2)
	n.want(series{
		"felix_publish_records_total": 5, "felix_log_appends_total": 3, `felix_stream_records_total{stream="dev/default/memory"}`: 2,
	})

	k := n.peer().session(n.token)
	reader, err := auth.Mint(n.key, auth.Claims{
		Subject: "reader", Tenant: tenant, IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour),
		Permissions: []string{"stream.subscribe:stream:dev/*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	k.send("demo", -1)
	for _, try := range []struct{ want, got string }{
		{"invalid_request", k.answer()},
		{"not_found", k.try("nowhere")},
		{"forbidden", n.peer().session(reader).try("demo")},
		{"refused", k.try("demo", func(p *wire.Publish) { p.Idempotent, p.ProducerID, p.Sequence = true, 5, 7 })},
	} {
		if try.got != try.want {
			t.Errorf("answered %s, want %s", try.got, try.want)
		}
		n.want(series{`felix_publish_requests_total{result="` + try.want + `"}`: 1})
	}
	n.want(series{`felix_publish_requests_total{result="ok"}`: 5, "felix_publish_records_total": 5, "felix_publish_ack_seconds": 9})
}

// disks meets everything that a disk can do to a publisher.
func disks(t *testing.T, w *witness) {
	n := w.start(t)
	k := n.peer().session(n.token)
	problem := func(kind string) string { return `felix_shard_problems{problem="` + kind + `"}` }

	n.disk.Inject(faultfs.Fault{Op: faultfs.OpReadDir, Name: in("broken"), Times: -1})
	if _, _, err := n.http().CreateStream(n.ctx(), admin.StreamSpec{Name: adminName("broken"), Shards: 2}, ""); err == nil {
		t.Error("a stream was created on a broken disk")
	}
	if got := k.try("broken"); got != "shard_unavailable" {
		t.Errorf("stream that cannot be opened: %s", got)
	}
	n.want(series{problem("unavailable"): 2, `felix_publish_requests_total{result="shard_unavailable"}`: 1})

	for kind, c := range map[string]struct {
		fault  faultfs.Fault
		answer string
	}{
		"disk_full": {faultfs.Fault{Op: faultfs.OpWrite, Err: syscall.ENOSPC}, "overloaded"},
		"read_only": {faultfs.Fault{Op: faultfs.OpWrite, Err: syscall.EROFS}, "overloaded"},
		"write":     {faultfs.Fault{Op: faultfs.OpRename, Err: syscall.EIO}, "storage"}, // of the next segment
	} {
		n.create(kind)
		if got := k.try(kind); got != "ok" {
			t.Fatalf("%s: before the fault: %s", kind, got)
		}
		c.fault.Name, c.fault.Times = in(kind), -1
		n.disk.Inject(c.fault)
		failed, logErrors := 0.0, `felix_log_errors_total{kind="`+kind+`"}`
		for failed < 3 {
			k.send(kind, 30<<10)
			if got := k.answer(); got == c.answer {
				failed++
			} else if got != "ok" || failed > 0 {
				t.Fatalf("%s: answered %s", kind, got)
			}
		}
		n.want(series{problem(kind): 1, logErrors: 3})
		n.disk.Heal()
		if got := k.try(kind); got != "ok" {
			t.Errorf("%s: after the fault: %s", kind, got)
		}
		n.want(series{problem(kind): 0, logErrors: 3})
	}

	n.create("poisoned")
	n.disk.Inject(faultfs.Fault{Op: faultfs.OpDatasync, Name: in("poisoned")})
	for range 3 {
		k.send("poisoned", 40<<10) // too large for the write-ahead log
		if got := k.answer(); got != "storage" {
			t.Errorf("failed flush: %s", got)
		}
	}
	n.want(series{problem("poisoned"): 1, `felix_log_errors_total{kind="poisoned"}`: 1})

	// The write-ahead log fails: who shared it has his own log flushed from then on.
	n.create("one")
	n.create("other")
	n.disk.Inject(faultfs.Fault{Op: faultfs.OpDatasync, Name: func(name string) bool { return strings.Contains(name, "/wal/") }})
	for range 3 {
		for _, s := range []string{"one", "other"} {
			if got := k.try(s); got != "ok" {
				t.Errorf("%s: %s", s, got)
			}
		}
	}
	n.want(series{"felix_wal_poisoned": 1})
}

// noRoom fills every bound that a publish has to pass.
func noRoom(t *testing.T, w *witness) {
	n := w.start(t, func(c *broker.Config) {
		l := &c.Limits
		// A publish of 40 KiB counts for 64.5 KiB: one fits a shard, three a connection, four the broker.
		l.ShardIngressBytes, l.ConnectionIngressBytes, l.IngressBytes = 100<<10, 210<<10, 280<<10
		l.PublishIngressWait = admin.Duration(50 * time.Millisecond)
		c.Streams.PublishWait = admin.Duration(50 * time.Millisecond)
	})
	for _, s := range []string{"held1", "held2", "held3", "held4"} {
		n.create(s)
	}
	_, release := n.disk.Hold(faultfs.OpDatasync, func(name string) bool { return strings.Contains(name, "/held") })
	defer release()
	a, b := n.peer().session(n.token), n.peer().session(n.token)
	shed := func(k *session, stream, reason string) {
		t.Helper()
		k.send(stream, 40<<10)
		if got := k.answer(); got != "overloaded" {
			t.Errorf("%s: answered %s", reason, got)
		}
		n.want(series{`felix_publish_shed_total{reason="` + reason + `"}`: 1})
	}
	a.send("held1", 40<<10)
	shed(a, "held1", "shard_queue")
	a.send("held2", 40<<10)
	a.send("held3", 40<<10)
	shed(a, "held4", "connection_bytes")
	b.send("held1", 40<<10)
	shed(b, "held2", "process_bytes")
	if got := n.scrape()["felix_ingress_bytes"]; got < 4*40<<10 {
		t.Errorf("%v bytes of publishes are held", got)
	}
	release()
	for range 3 {
		if got := a.answer(); got != "ok" {
			t.Errorf("after the wait: %s", got)
		}
	}
	if got := b.answer(); got != "ok" {
		t.Errorf("after the wait: %s", got)
	}
	eventually(t, "nothing is held", func() bool { return n.scrape()["felix_ingress_bytes"] == 0 })

	n.create("blocked", queue(1, "Block"))
	n.subscribe(n.dial(), "blocked", client.Latest())
	reader := `felix_publish_shed_total{reason="readers"}`
	eventually(t, "the reader has no room", func() bool {
		b.send("blocked", 30<<10)
		return b.answer() == "overloaded"
	})
	n.want(series{reader: 1, `felix_publish_requests_total{result="overloaded"}`: 4})
}

// endOfBroker looks at a broker while it shuts down, and afterwards.
func endOfBroker(t *testing.T, w *witness) {
	n := w.start(t)
	p := n.peer()
	k := p.session(n.token)
	n.subscribe(n.dial(), "demo", client.Latest())
	entered, release := n.disk.Hold(faultfs.OpDatasync, in("demo"))
	k.send("demo", 100)
	<-entered
	down := make(chan struct{})
	go func() {
		defer close(down)
		n.stop()
	}()
	eventually(t, "the broker is not ready any more", func() bool { return n.scrape()["felix_ready"] == 0 })
	eventually(t, "publishes are refused", func() bool {
		k.send("demo", 100)
		return k.answer() == "draining"
	})
	if _, m := p.auth(tenant, n.token); m.MessageType() != "error" {
		t.Errorf("a session was begun: %+v", m)
	}
	if now := n.scrape(); now[`felix_sessions_rejected_total{reason="draining"}`] == 0 || now[`felix_publish_requests_total{result="draining"}`] == 0 {
		t.Errorf("draining is not counted")
	}
	release()
	<-down
	n.want(series{
		`felix_publish_requests_total{result="ok"}`: 1, `felix_subscriptions_ended_total{reason="shutdown"}`: 1,
		`felix_subscriptions{state="waiting"}`: 0, "felix_connections": 0,
	})
}

// readers sees each state of a reader.
func readers(t *testing.T, w *witness) {
	n := w.start(t)
	c := n.dial()
	state := func(s string) string { return `felix_subscriptions{state="` + s + `"}` }
	n.create("history", queue(0, "CatchUp"))
	n.publish(c, "history", 100)
	s := n.subscribe(c, "history", client.Earliest())
	eventually(t, "it reads from the log", func() bool { return n.scrape()[state("behind")] == 1 })
	if st := n.stateOf("history"); st != "behind" && st != "blocked" {
		t.Errorf("who reads the log and does not go on is %s", st)
	}
	eventually(t, "its write goes nowhere", func() bool { return n.scrape()[state("blocked")] == 1 })
	if st := n.stateOf("history"); st != "blocked" {
		t.Errorf("who does not read is %s", st)
	}
	l := n.readers("history")[0]
	lag := n.scrape()[`felix_subscription_lag_records{stream="dev/default/history",subscription="`+strconv.FormatUint(l.ID, 10)+`"}`]
	if lag == 0 || lag > 100 || lag != n.scrape()[`felix_stream_lag_records_max{stream="dev/default/history"}`] ||
		lag != n.scrape()[`felix_stream_lag_records{stream="dev/default/history"}`] || l.LagRecords != uint64(lag) {
		t.Errorf("lag of a reader that took nearly nothing of 100: %v, listed as %d", lag, l.LagRecords)
	}
	for range 100 {
		if _, err := s.Next(n.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it has everything", func() bool { return n.scrape()[state("waiting")] == 1 })
	for range 5 { // it stops to read while it is live
		n.publish(c, "history", 1)
	}
	eventually(t, "it is live", func() bool { n.publish(c, "history", 1); return n.scrape()[state("live")] == 1 })
	if got := n.scrape()["felix_egress_log_reads_total"]; got == 0 || got > 100 {
		t.Errorf("%v pages were read", got)
	}
	if got := n.scrape()["felix_egress_records_total"]; got < 100 || got > 200 {
		t.Errorf("%v records were sent", got)
	}
	n.want(series{"felix_subscriptions_started_total": 1, `felix_stream_subscriptions{stream="dev/default/history"}`: 1})
}

// ended waits until so many readers have ended for a reason.
func (n *node) ended(reason string, want float64) {
	n.t.Helper()
	s := `felix_subscriptions_ended_total{reason="` + reason + `"}`
	eventually(n.t, s, func() bool { return n.since(s) == want })
}

// endsOfReaders sees each reason for the end of a reader.
func endsOfReaders(t *testing.T, w *witness) {
	n := w.start(t)
	c := n.dial()
	ended := func(reason string) { t.Helper(); n.ended(reason, 1) }
	if err := n.subscribe(c, "demo", client.Latest()).Close(); err != nil {
		t.Fatal(err)
	}
	ended("client")

	p := n.peer()
	k := p.session(n.token)
	k.write(wire.AppendMessage(nil, &wire.Subscribe{TenantID: tenant, Namespace: "default", Stream: "demo"}))
	if _, m := k.next(); m.MessageType() != "subscribed" {
		t.Fatalf("got %+v", m)
	}
	_ = p.conn.CloseWithError(0, "") // it has no error
	ended("connection")

	s := n.subscribe(c, "demo", client.Latest())
	if err := n.http().EndSubscription(n.ctx(), n.readers("demo")[0].ID); err != nil {
		t.Fatal(err)
	}
	ended("admin")
	t.Logf("ended by an operator: %v", n.readToEnd(s))

	n.create("gone")
	gone := filepath.Dir(n.logDir("gone"))
	s = n.subscribe(c, "gone", client.Latest())
	if err := n.http().DeleteStream(n.ctx(), adminName("gone")); err != nil {
		t.Fatal(err)
	}
	ended("stream_deleted")
	t.Logf("deleted: %v", n.readToEnd(s))
	eventually(t, "its log is removed", func() bool {
		left, err := n.disk.ReadDir(gone)
		return err == nil && len(left) == 0
	})

	// Stalled for good.
	impatient := w.start(t, func(c *broker.Config) { c.Egress.SlowConsumerTimeout = admin.Duration(200 * time.Millisecond) })
	impatient.subscribe(impatient.dial(), "demo", client.Latest())
	impatient.publish(impatient.dial(), "demo", 20)
	impatient.ended("slow_consumer", 1)

	// Stalled, and reading again when it is too late.
	n.create("lagged", queue(4, "DropNew"))
	s = n.subscribe(c, "lagged", client.Latest())
	n.publish(c, "lagged", 40)
	t.Logf("lagged: %v", n.readToEnd(s))
	ended("lagged")
	if got := n.scrape()[`felix_subscription_dropped_records_total{stream="dev/default/lagged"}`]; got == 0 || got >= 40 {
		t.Errorf("%v records of 40 were dropped", got)
	}

	// Stalled in what retention takes.
	n.create("trimmed", queue(0, "CatchUp"), func(s *admin.StreamSpec) { s.Retention.MaxBytes = 512 << 10 })
	n.publish(c, "trimmed", 100)
	s = n.subscribe(c, "trimmed", client.Earliest())
	page := n.since("felix_egress_log_reads_total")
	eventually(t, "it reads", func() bool { return n.since("felix_egress_log_reads_total") >= max(page, 1) })
	const first = `felix_log_segments_trimmed_total`
	trimmed := func() bool {
		st, err := n.http().Stream(n.ctx(), adminName("trimmed"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Shards[0].OldestOffset > 100
	}
	eventually(t, "retention takes what it has not read", func() bool { n.publish(c, "trimmed", 20); return trimmed() })
	t.Logf("too old: %v", n.readToEnd(s))
	ended("too_old")
	if got := n.since(first); got < 5 {
		t.Errorf("%v segments were trimmed", got)
	}
}

// badLogs lets readers meet what cannot be read.
func badLogs(t *testing.T, w *witness) {
	n := w.start(t)
	c := n.dial()
	for _, s := range []string{"rotten", "unreadable"} {
		n.create(s)
		n.publish(c, s, 60) // four segments; the ring holds the last one
	}
	n.damage("rotten")
	t.Logf("damaged: %v", n.readToEnd(n.subscribe(c, "rotten", client.Earliest())))
	n.ended("storage", 1)
	n.want(series{`felix_log_errors_total{kind="corruption"}`: 1, `felix_shard_problems{problem="damaged"}`: 1})
	n.disk.Inject(faultfs.Fault{Op: faultfs.OpRead, Name: in("unreadable"), Times: -1}) // its index, too
	t.Logf("unreadable: %v", n.readToEnd(n.subscribe(c, "unreadable", client.Earliest())))
	n.ended("storage", 2)
	n.want(series{`felix_log_errors_total{kind="read"}`: 1, `felix_shard_problems{problem="damaged"}`: 1})
}

// logDir is where a stream's log is.
func (n *node) logDir(stream string) string {
	n.t.Helper()
	st, err := n.http().Stream(n.ctx(), adminName(stream))
	if err != nil {
		n.t.Fatal(err)
	}
	return filepath.Join(n.dir, "streams", tenant, "default", stream, st.Incarnation, "0")
}

// damage flips bits in the middle of a stream's first segment.
func (n *node) damage(stream string) {
	n.t.Helper()
	f, err := n.disk.OpenFile(filepath.Join(n.logDir(stream), "00000000000000000000.log"), os.O_RDWR, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte("rotten"), 30<<10); err != nil {
		n.t.Fatal(err)
	}
}
