//go:build race

package udp

// raceDetector: quic-go marks a connection whose trains were refused in a plain
// bool, written by its sending goroutine and read by its main one. Nothing comes
// of it, but the detector fails the test that makes it happen.
const raceDetector = true
