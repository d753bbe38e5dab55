// Package wal is a write-ahead log that many share.
package wal
