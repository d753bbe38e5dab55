package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"felix.dev/felix/client"
)

// Connect to a broker with a token and the certificate authority of the installation.
func ExampleDial() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{
		Addrs:  []string{"felix-0.felix.default.svc:5000", "felix-1.felix.default.svc:5000"},
		Tenant: "t1",
		Token:  "eyJhbGciOiJFZERTQSJ9...",
		CAFile: "/etc/felix/ca.crt",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			log.Print(err)
		}
	}()
}

// Publish one record and learn its offset.
func ExampleClient_Publish() {
	var c *client.Client // from Dial
	orders := client.Stream{Namespace: "default", Name: "orders"}
	receipt, err := c.Publish(context.Background(), orders, client.Message{
		Key:     []byte("customer-7"), // records of one key stay in order
		Payload: []byte(`{"order":1}`),
	})
	switch {
	case errors.Is(err, client.ErrOutcomeUnknown):
		log.Print("stored or not: ask, or publish again if a repeat does no harm")
	case err != nil:
		log.Print("not stored: ", err)
	default:
		fmt.Println("stored at offset", receipt.Offset)
	}
}

// Publish many records without waiting for each, and without a repeat when a connection is lost.
func ExamplePublisher() {
	var c *client.Client // from Dial
	ctx := context.Background()
	p, err := c.NewPublisher(client.Stream{Namespace: "default", Name: "orders"}, client.PublisherConfig{Idempotent: true})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 100_000 {
		// Waits when 4 MiB are under way.
		if _, err := p.Publish(ctx, client.Message{Payload: fmt.Appendf(nil, "order %d", i)}); err != nil {
			log.Fatal(err)
		}
	}
	if err := p.Close(ctx); err != nil { // flushes, and tells of the first failure
		log.Fatal(err)
	}
}

// Read a stream from its oldest record on, and go on by itself after lost connections.
func ExampleSubscription_Next() {
	var c *client.Client // from Dial
	ctx := context.Background()
	sub, err := c.Subscribe(ctx, client.Stream{Namespace: "default", Name: "orders"}, client.SubscribeConfig{
		Start:  client.Earliest(),
		OnLost: func(err error) { log.Print("resuming: ", err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	for {
		e, err := sub.Next(ctx)
		if errors.Is(err, io.EOF) {
			break // the stream was deleted
		}
		if err != nil {
			log.Fatal(err, " at offset ", sub.Position())
		}
		fmt.Printf("%d: %s\n", e.Offset, e.Payload)
	}
	if err := sub.Close(); err != nil {
		log.Print(err)
	}
}

// Store the position with the results, and begin there after a restart.
func ExampleSubscription_NextBatch() {
	var c *client.Client // from Dial
	ctx := context.Background()
	orders := client.Stream{Namespace: "default", Name: "orders"}
	sub, err := c.Subscribe(ctx, orders, client.SubscribeConfig{Start: client.At(loadPosition())})
	if tooOld, ok := errors.AsType[*client.CursorError](err); ok {
		// Decide: here, to go on with what is left.
		log.Printf("records %d to %d are gone", tooOld.Requested, tooOld.Available)
		sub, err = c.Subscribe(ctx, orders, client.SubscribeConfig{Start: client.At(tooOld.Available)})
	}
	if err != nil {
		log.Fatal(err)
	}
	for {
		events, err := sub.NextBatch(ctx)
		if err != nil {
			log.Fatal(err)
		}
		total := 0
		for _, e := range events {
			total += len(e.Payload) // valid until the next call
		}
		storeResult(total, sub.Position())
	}
}

func loadPosition() uint64    { return 0 }
func storeResult(int, uint64) {}
