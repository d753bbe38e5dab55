// Package client publishes to and subscribes from Felix brokers.
package client
