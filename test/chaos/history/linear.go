package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// maxLinear bounds the operations that are searched for a linearization, by shard: the search's memory is quadratic.
const maxLinear = 1500

// input is an operation on a shard. Its answer is known when it is looked at: the offset.
type input struct {
	kind   opKind
	offset uint64
	// after is the offset behind the record in front of it: what is between them is hidden. That it is known spares the search
	// all orders in which something stands behind what it stands in front of.
	after uint64
}

type opKind uint8

const (
	opAppend opKind = iota // puts a record at offset
	opRead                 // is given the record at offset
	opEnd                  // begins behind everything that is there, at offset
)

// logModel is a log: its state is the offset after the last record. Offsets that nobody has may be hidden records.
var logModel = porcupine.Model{
	Init: func() any { return uint64(0) },
	Step: func(state, in, _ any) (bool, any) {
		next, _ := state.(uint64)
		op, _ := in.(input)
		switch op.kind {
		case opAppend:
			return op.after <= next && next <= op.offset, op.offset + 1
		case opRead:
			return op.offset < next, next
		case opEnd:
			return op.after <= next && next <= op.offset, op.offset
		}
		return false, next
	},
	DescribeOperation: func(in, _ any) string {
		op, _ := in.(input)
		return fmt.Sprintf("%s %d", [...]string{"append", "read", "end"}[op.kind], op.offset)
	},
}

// checkLinear searches for an order of the operations that explains all answers, over the last operations of each shard. A
// subset of a history that has such an order has one too, as long as no read is looked at without its append.
func checkLinear(h History, f *findings, within time.Duration) {
	for shard, ops := range operations(h) {
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		ops = ops[max(0, len(ops)-maxLinear):]
		ops = withAppends(ops)
		switch porcupine.CheckOperationsTimeout(logModel, ops, within) {
		case porcupine.Illegal:
			f.add(NotLinear, shard, "there is no order of the last %d operations that explains their answers", len(ops))
		case porcupine.Unknown:
			f.add(NotChecked, shard, "no order of the last %d operations was found or excluded within %v", len(ops), within)
		case porcupine.Ok:
		}
	}
}

// operations lists what happened, by shard.
func operations(h History) map[Shard][]porcupine.Operation {
	all := map[Shard][]porcupine.Operation{}
	for shard, list := range intervals(h) {
		for _, i := range list {
			kind := opAppend
			if i.reader {
				kind = opEnd
			}
			all[shard] = append(all[shard], porcupine.Operation{Input: input{kind: kind, offset: i.offset()}, Call: i.call, Return: i.done})
		}
	}
	for n := range h.Readers {
		r := &h.Readers[n]
		for _, d := range r.Deliveries {
			all[r.Shard] = append(all[r.Shard], porcupine.Operation{ClientId: n, Input: input{kind: opRead, offset: d.Offset}, Call: d.At, Return: d.At})
		}
	}
	return all
}

// withAppends drops the reads whose append is not among the operations, and finds what stands in front of the others.
func withAppends(ops []porcupine.Operation) []porcupine.Operation {
	var appended []uint64
	for _, o := range ops {
		if in, _ := o.Input.(input); in.kind == opAppend {
			appended = append(appended, in.offset)
		}
	}
	slices.Sort(appended)
	ops = slices.DeleteFunc(ops, func(o porcupine.Operation) bool {
		in, _ := o.Input.(input)
		_, there := slices.BinarySearch(appended, in.offset)
		return in.kind == opRead && !there
	})
	for i := range ops {
		in, _ := ops[i].Input.(input)
		if at, _ := slices.BinarySearch(appended, in.offset); at > 0 {
			in.after = appended[at-1] + 1
			ops[i].Input = in
		}
	}
	return ops
}
