package replica

import (
	"cmp"
	"encoding/hex"
	"fmt"
)

// ShardKey names a shard for good: a stream that is made again has another incarnation.
type ShardKey struct {
	Incarnation string // 32 hexadecimal digits, lower case
	Shard       uint32
}

// String is for people.
func (k ShardKey) String() string { return fmt.Sprintf("%s/%d", k.Incarnation, k.Shard) }

const incarnationLen = 16

// incarnation is the key's as bytes.
func (k ShardKey) incarnation() (out [incarnationLen]byte, err error) {
	b, err := hex.DecodeString(k.Incarnation)
	if err != nil || len(b) != len(out) || hex.EncodeToString(b) != k.Incarnation {
		return out, fmt.Errorf("replica: incarnation %q is not 32 hexadecimal digits", k.Incarnation)
	}
	return [incarnationLen]byte(b), nil
}

func keyOf(incarnation []byte, shard uint32) ShardKey {
	return ShardKey{Incarnation: hex.EncodeToString(incarnation), Shard: shard}
}

func compareKeys(a, b ShardKey) int {
	return cmp.Or(cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Shard, b.Shard))
}
