// Package pki makes and reads the certificates by which brokers of a cluster know each other.
package pki
