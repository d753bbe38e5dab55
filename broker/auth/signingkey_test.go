package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPEMRoundTrip(t *testing.T) {
	key := newKey(t)
	data, err := key.marshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	back, err := parsePEM(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(back, key); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestParsePEMRefuses(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty":       nil,
		"no pem":      []byte("hello"),
		"other block": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"other key":   pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}),
		"cut":         pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der[:10]}),
	} {
		if _, err := parsePEM(data); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
