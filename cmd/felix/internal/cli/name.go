package cli

import (
	"strings"

	"felix.dev/felix/broker/catalog"
	"felix.dev/felix/client"
)

// parseStream reads a stream's name as people write it: "orders" in the default namespace, or "shop/orders".
func parseStream(s string) (client.Stream, error) {
	namespace, name, found := strings.Cut(s, "/")
	if !found {
		namespace, name = catalog.DefaultNamespace, s
	}
	if namespace == "" || name == "" || strings.ContainsAny(name, "/:*") || strings.ContainsAny(namespace, ":*") {
		return client.Stream{}, usagef("stream %q: want NAME or NAMESPACE/NAME, without ':' and '*'", s)
	}
	return client.Stream{Namespace: namespace, Name: name}, nil
}

// showStream writes a stream's name the way parseStream reads it.
func showStream(namespace, name string) string {
	if namespace == catalog.DefaultNamespace {
		return name
	}
	return namespace + "/" + name
}
