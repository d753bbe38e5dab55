package client

import (
	"context"
	"errors"
	"sync"
)

// tokens keeps the token in use, so that hundreds of streams do not ask the source hundreds of times.
type tokens struct {
	source func(context.Context) (string, error) // nil: current never changes

	mu      sync.Mutex
	current string // guarded by mu; empty: ask the source
}

func newTokens(cfg *Config) *tokens {
	if cfg.TokenSource != nil {
		return &tokens{source: cfg.TokenSource}
	}
	return &tokens{current: cfg.Token}
}

// token returns the token to use.
func (t *tokens) token(ctx context.Context) (string, error) {
	t.mu.Lock()
	current := t.current
	t.mu.Unlock()
	if current != "" {
		return current, nil
	}
	// Not under the lock: a source may take its time, and each caller has a context of its own.
	fresh, err := t.source(ctx)
	if err != nil {
		return "", &tokenError{err}
	}
	if fresh == "" {
		return "", &tokenError{errors.New("returned an empty token")}
	}
	t.mu.Lock()
	t.current = fresh
	t.mu.Unlock()
	return fresh, nil
}

// refuse says that a broker did not accept a token. It reports whether another one may be had.
func (t *tokens) refuse(token string) bool {
	if t.source == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == token {
		t.current = ""
	}
	return true
}

// tokenError is a failure of the application's token source.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "felix: token source: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }
