package bench

import (
	"errors"
	"strings"
	"testing"

	"felix.dev/felix/client"
)

func TestKept(t *testing.T) {
	boom := &client.LostError{Err: errors.New("boom")}
	s := &session{readers: []*reader{{tally: &tally{}}, {stalled: true, tally: &tally{lost: errors.New("as meant")}}, {tally: &tally{lost: boom}}}}
	if err := s.kept(account{Expected: 9, Delivered: 9}); err != nil {
		t.Errorf("nothing was dropped: %v", err)
	}
	err := s.kept(account{Expected: 9, Delivered: 5, Dropped: 4, Lost: 1})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), "4 of 9") || !strings.Contains(err.Error(), "1 subscriptions were lost") {
		t.Errorf("error %v", err)
	}
	s.readers = s.readers[:2]
	if err := s.kept(account{Expected: 9, Delivered: 5, Dropped: 4, Lagged: 1}); err == nil {
		t.Error("four were dropped")
	}
}
