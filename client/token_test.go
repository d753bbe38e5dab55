package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"felix.dev/felix/broker/wire"
	"felix.dev/felix/client/internal/fakebroker"
)

func TestTokens(t *testing.T) {
	var valid atomic.Value
	valid.Store("first")
	b := startBroker(t, fakebroker.Config{Hooks: fakebroker.Hooks{Auth: func(m *wire.Auth) wire.Message {
		if m.TenantID != "t1" || *m.ClientFlags != 0x1FFF || !m.ClientFeatures.Has(wire.FeatureErrorCodes|wire.FeatureSubscriptionLagged) {
			return &wire.ErrorMsg{Message: "wrong offer", Code: "invalid_request"}
		}
		if m.Token != valid.Load() {
			return &wire.ErrorMsg{Message: "expired", Code: "unauthenticated", Retry: "fatal"}
		}
		return &wire.AuthOK{ServerFlags: wire.StandaloneFlags, ServerFeatures: wire.StandaloneFeatures}
	}}})
	var asked atomic.Int64
	source := func(context.Context) (string, error) {
		switch asked.Add(1) {
		case 1:
			return "first", nil
		case 2:
			return "second", nil
		}
		return "", errors.New("no more tokens")
	}
	cfg := configFor(b)
	cfg.Token, cfg.TokenSource = "", source
	c := dial(t, cfg)
	ctx := testContext(t)
	for range 3 {
		if _, err := c.Shards(ctx, demo); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the source was asked %d times, want once", n)
	}
	// A refused token is replaced once and the request goes on.
	valid.Store("second")
	if _, err := c.Shards(ctx, demo); err != nil {
		t.Errorf("with the second token: %v", err)
	}
	subscribe(t, c, demo, SubscribeConfig{})
	if n := asked.Load(); n != 2 {
		t.Errorf("the source was asked %d times, want twice", n)
	}
	valid.Store("third")
	_, err := c.Shards(ctx, demo)
	wantA[*tokenError](t, err)
	_, err = c.Subscribe(ctx, demo, SubscribeConfig{})
	wantA[*tokenError](t, err)
}
