package broker_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"felix.dev/felix/broker"
	"felix.dev/felix/broker/auth"
	"felix.dev/felix/broker/server"
	"felix.dev/felix/broker/vfs/faultfs"
	"felix.dev/felix/client"
)

// readyText is the detail of a check of /readyz; the broker has to be ready.
func (n *node) readyText(check string) string {
	n.t.Helper()
	r, err := n.http().Readiness(n.ctx())
	if err != nil || !r.Ready {
		n.t.Fatalf("readiness %+v, %v: a stream that fails must not take the others out of service", r, err)
	}
	for _, c := range r.Checks {
		if c.Name == check {
			return c.Message
		}
	}
	n.t.Fatalf("no check %q in %+v", check, r)
	return ""
}

// shardText is what the list of streams says of a stream's shard.
func (n *node) shardText(stream string) string {
	n.t.Helper()
	st, err := n.http().Stream(n.ctx(), adminName(stream))
	if err != nil {
		n.t.Fatal(err)
	}
	if (st.Shards[0].Error == "") != (st.Shards[0].Detail == "") {
		n.t.Errorf("shown as %+v", st.Shards[0])
	}
	return st.Shards[0].Error + " " + st.Shards[0].Detail
}

// What is wrong with a shard is shown with what to do, in readiness and in the list of
// streams, and said in the log once, however many publishes meet it (B93).
func TestProblemsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		fault    faultfs.Fault
		what, do string
		log      string
		passes   bool // by itself
	}{
		"full": {
			faultfs.Fault{Op: faultfs.OpWrite, Err: syscall.ENOSPC, Times: -1},
			"the disk is full", "free space", "WARN the log takes no writes", true,
		},
		"read-only": {
			faultfs.Fault{Op: faultfs.OpWrite, Err: syscall.EROFS, Times: -1},
			"takes no writes", "make the file system writable", "WARN the log takes no writes", true,
		},
		"poisoned": {
			faultfs.Fault{Op: faultfs.OpDatasync},
			"a write to the disk failed", "restart the broker", "ERROR log poisoned", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t)
			n.create("s")
			k := n.peer().session(n.token)
			if got := k.try("s"); got != "ok" || n.readyText("streams") != "" || n.shardText("s") != " " {
				t.Fatalf("before the fault: %s, %q", got, n.readyText("streams"))
			}
			c.fault.Name = in("s")
			n.disk.Inject(c.fault)
			for range 50 {
				if got := k.try("s"); got == "ok" {
					t.Fatal("published")
				}
			}
			for where, text := range map[string]string{"readiness": n.readyText("streams"), "stream": n.shardText("s")} {
				if !strings.Contains(text, c.what) || !strings.Contains(text, c.do) {
					t.Errorf("%s says %q", where, text)
				}
			}
			if text := n.readyText("streams"); !strings.HasPrefix(text, "dev/default/s shard 0: ") {
				t.Errorf("readiness names no stream: %q", text)
			}
			if l := n.log.with(c.log); len(l) != 1 || !strings.Contains(l[0], "dev/default/s") {
				t.Errorf("the log says %q", l)
			}
			n.disk.Heal()
			got := k.try("s")
			if (got == "ok") != c.passes {
				t.Errorf("after the fault: %s", got)
			}
			if c.passes && (n.readyText("streams") != "" || n.shardText("s") != " " || len(n.log.with("INFO the log takes writes again", "after=")) != 1) {
				t.Errorf("it is over, and still shown: %q", n.readyText("streams"))
			}
			if l := n.log.with("WARN"); len(l) > 3 {
				t.Errorf("the log says more than once what happened 50 times: %q", l)
			}
		})
	}
}

// Damage that a reader meets is shown, and said once for the stream.
func TestDamageIsShown(t *testing.T) {
	n := startNode(t)
	n.create("s")
	c := n.dial()
	n.publish(c, "s", 60)
	n.damage("s")
	for range 3 { // as a client would that does not give up
		_ = n.readToEnd(n.subscribe(c, "s", client.Earliest()))
	}
	for where, text := range map[string]string{"readiness": n.readyText("streams"), "stream": n.shardText("s")} {
		if !strings.Contains(text, "acknowledged records are damaged") || !strings.Contains(text, "felix inspect") || !strings.Contains(text, "offset 7") {
			t.Errorf("%s says %q", where, text)
		}
	}
	if l := n.log.with("ERROR acknowledged records are damaged", "stream=dev/default/s"); len(l) != 1 {
		t.Errorf("the log says %q", l)
	}
	eventually(t, "each end is said", func() bool {
		return len(n.log.with("ERROR subscription ended: the log cannot be read on", "offset=7")) == 3
	})
	// Publishing goes on, and what lies in segments behind can be read from there on.
	n.publish(c, "s", 1)
	behind := n.subscribe(c, "s", client.At(20))
	for at := uint64(20); at < 61; at++ {
		if e, err := behind.Next(n.ctx()); err != nil || e.Offset != at {
			t.Fatalf("behind the damage: %+v, %v", e, err)
		}
	}
}

// A certificate that is about to expire is shown and said, and a new one is taken.
func TestCertificateExpiryIsShown(t *testing.T) {
	dir := t.TempDir()
	made := func(left time.Duration) server.SelfSigned {
		t.Helper()
		for _, name := range []string{"tls.crt", "tls.key"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		s, err := server.EnsureSelfSigned(dir, nil, time.Now().Add(left-2*365*24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	old := made(time.Hour)
	n := startNode(t, func(c *broker.Config) { c.TLS = broker.TLS{CertFile: old.CertFile, KeyFile: old.KeyFile} })
	if text := n.readyText("certificate"); !strings.HasPrefix(text, "expires at ") {
		t.Errorf("readiness says %q", text)
	}
	if l := n.log.with("WARN certificate expires at"); len(l) != 1 {
		t.Errorf("the log says %q", l)
	}
	soon := n.scrape()["felix_certificate_expiry_timestamp_seconds"]
	if d := time.Until(time.Unix(int64(soon), 0)); d < 50*time.Minute || d > 70*time.Minute {
		t.Errorf("the metric says that it expires in %s", d)
	}
	made(100 * 24 * time.Hour)
	eventually(t, "the new certificate is taken", func() bool {
		return n.readyText("certificate") == "" && n.scrape()["felix_certificate_expiry_timestamp_seconds"] > soon
	})
	made(-time.Hour)
	eventually(t, "one that has expired is shown", func() bool { return strings.HasPrefix(n.readyText("certificate"), "expired at ") })
}

// A key file that cannot be used any more is shown; its keys go on to be good.
func TestBadKeyFileIsShown(t *testing.T) {
	jwks := filepath.Join(t.TempDir(), "shop.jwks")
	key, err := auth.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := auth.NewKeySet(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		t.Helper()
		if err := os.WriteFile(jwks, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good, err := set.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	write(good)
	n := startNode(t, func(c *broker.Config) { c.Auth.Keys = map[string]string{"shop": jwks} })
	token, err := auth.Mint(key, auth.Claims{Subject: "till", Tenant: "shop", IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	authenticates := func() bool {
		_, m := n.peer().auth("shop", token)
		return m.MessageType() == "auth_ok"
	}
	if text := n.readyText("keys"); text != "" || !authenticates() {
		t.Errorf("readiness says %q", text)
	}
	write([]byte("{}"))
	eventually(t, "the file is shown", func() bool { return authenticates() && strings.Contains(n.readyText("keys"), "tenant shop") })
	write(good)
	eventually(t, "it is good again", func() bool { return authenticates() && n.readyText("keys") == "" })
	if len(n.log.with("ERROR key file", "tenant=shop")) != 1 || len(n.log.with("INFO key file is good again")) != 1 {
		t.Errorf("the log says %q", n.log.with("key file"))
	}
}
