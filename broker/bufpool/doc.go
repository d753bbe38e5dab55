// Package bufpool gives memory for the bytes of frames, and takes it back.
//
// It bounds nothing: whoever asks has counted what he asks for. A buffer has one owner at
// a time, who gives it back once. Any goroutine may take and give.
package bufpool
