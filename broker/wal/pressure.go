package wal

import "time"

// pressAgain is how long who was asked has before he is asked again.
const pressAgain = time.Second

// runPressure asks those who keep the oldest file to let go, while there is too much.
func (l *Log) runPressure() {
	defer l.wg.Done()
	timer := time.NewTimer(pressAgain)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-l.press:
		case <-timer.C:
		case <-l.stopping:
			return
		}
		keys := l.pinners()
		if len(keys) == 0 || l.cfg.Pressure == nil {
			continue
		}
		l.log.Debug("write-ahead log is full, its oldest file is asked for", "dir", l.cfg.Dir, "keys", len(keys))
		l.cfg.Pressure(keys)
		timer.Reset(pressAgain)
	}
}

// pinners are the keys to ask, none while there is room.
func (l *Log) pinners() []string {
	if !l.overfull() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pinnersLocked(l.files[0])
}
