package stream

// Name is what a client calls a stream.
type Name struct {
	Tenant, Namespace, Stream string
}

// String is "tenant/namespace/stream", the form permissions are checked against.
func (n Name) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Stream }
