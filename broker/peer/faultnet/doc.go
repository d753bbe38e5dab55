// Package faultnet is a network between brokers of one process that fails on demand. It is for tests.
package faultnet
