// Other bytes of the same meaning: protobuf leaves an encoder much freedom, of which
// Go's uses none, while encoders in other languages do.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/google/pprof/profile"
)

// file is the profile as one of many possible files.
func (r maker) file(p *profile.Profile) ([]byte, error) {
	if err := p.CheckValid(); err != nil {
		return nil, err
	}
	var plain bytes.Buffer
	if err := p.WriteUncompressed(&plain); err != nil {
		return nil, err
	}
	t := twister{r, r.percent(40), r.percent(40), r.percent(40), r.percent(40)}
	data := r.compress(t.message(plain.Bytes(), wholeProfile))
	before, err := profile.ParseData(plain.Bytes())
	if err != nil {
		return nil, err
	}
	after, err := profile.ParseData(data)
	if err != nil {
		return nil, fmt.Errorf("after the twist: %v", err)
	}
	if found := difference(exact(before), exact(after)); found != "" {
		return nil, fmt.Errorf("the twist changed the meaning: %s", found)
	}
	return data, nil
}

// compress makes one gzip member, two that break the message anywhere, or none.
func (r maker) compress(message []byte) []byte {
	cuts := []int{0, len(message)}
	switch r.Intn(3) {
	case 0:
		return message
	case 1:
		cuts = []int{0, r.Intn(len(message) + 1), len(message)}
	}
	var out bytes.Buffer
	for i, from := range cuts[:len(cuts)-1] {
		member := gzip.NewWriter(&out)
		// Neither a buffer nor gzip into it fails.
		member.Write(message[from:cuts[i+1]])
		member.Close()
	}
	return out.Bytes()
}

// shape says what is in a kind of message, by the numbers of its fields.
type shape struct {
	messages map[int]shape
	// Numbers that repeat, which may be packed or not.
	numbers map[int]bool
	// Numbers that Go takes once only.
	once map[int]bool
}

var wholeProfile = shape{
	messages: map[int]shape{
		1:  {},
		2:  {messages: map[int]shape{3: {}}, numbers: map[int]bool{1: true, 2: true}},
		3:  {},
		4:  {messages: map[int]shape{4: {}}},
		5:  {},
		11: {},
	},
	numbers: map[int]bool{13: true},
	once:    map[int]bool{9: true},
}

// field is one of a message: a number, or bytes after a length or of a fixed one.
type field struct {
	number, wire int
	varint       uint64
	bytes        []byte
}

const (
	varint  = 0
	fixed64 = 1
	counted = 2
	fixed32 = 5
)

// twister says which liberties are taken.
type twister struct {
	maker
	unknown, order, packing, again bool
}

func (t twister) message(message []byte, is shape) []byte {
	var fields []field
	for _, f := range split(message) {
		if inner, ok := is.messages[f.number]; ok {
			f.bytes = t.message(f.bytes, inner)
		}
		if t.again && f.wire == varint && !is.numbers[f.number] && !is.once[f.number] {
			// Of a field that a message has once the last one counts, and no other.
			for n := t.Intn(3); n > 0; n-- {
				fields = append(fields, field{number: f.number, wire: varint, varint: t.Uint64()})
			}
		}
		if t.packing && is.numbers[f.number] {
			fields = append(fields, t.repack(f)...)
		} else {
			fields = append(fields, f)
		}
	}
	if t.order {
		// Among fields of one kind the order has a meaning.
		rank := map[int]int{}
		for _, f := range fields {
			if _, ok := rank[f.number]; !ok {
				rank[f.number] = t.Int()
			}
		}
		sort.SliceStable(fields, func(i, j int) bool {
			return rank[fields[i].number] < rank[fields[j].number]
		})
	}
	if t.unknown && t.percent(50) {
		wire := []int{varint, fixed64, counted, fixed32}[t.Intn(4)]
		number := []int{16, 100, 19000, 1<<29 - 1}[t.Intn(4)]
		length := map[int]int{fixed64: 8, fixed32: 4, counted: t.Intn(300)}[wire]
		f := field{number, wire, t.Uint64(), make([]byte, length)}
		t.Read(f.bytes)
		fields = append(fields, f)
	}
	var out []byte
	for _, f := range fields {
		out = f.append(out)
	}
	return out
}

// repack deals repeated numbers out to packed fields and single ones.
func (t twister) repack(f field) []field {
	numbers := []uint64{f.varint}
	if f.wire == counted {
		numbers = nil
		for rest := f.bytes; len(rest) > 0; {
			number, n := binary.Uvarint(rest)
			numbers, rest = append(numbers, number), rest[n:]
		}
	}
	var fields []field
	for len(numbers) > 0 {
		n := 1 + t.Intn(len(numbers))
		if t.percent(50) {
			packed := field{number: f.number, wire: counted}
			for _, number := range numbers[:n] {
				packed.bytes = appendVarint(packed.bytes, number)
			}
			fields = append(fields, packed)
		} else {
			for _, number := range numbers[:n] {
				fields = append(fields, field{number: f.number, wire: varint, varint: number})
			}
		}
		numbers = numbers[n:]
	}
	return fields
}

// split trusts its input, which Go wrote.
func split(message []byte) []field {
	var fields []field
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		f := field{number: int(tag >> 3), wire: int(tag & 7)}
		message = message[n:]
		f.varint, n = binary.Uvarint(message)
		message = message[n:]
		if f.wire == counted {
			f.bytes, message = message[:f.varint], message[f.varint:]
		}
		fields = append(fields, f)
	}
	return fields
}

func (f field) append(to []byte) []byte {
	to = appendVarint(to, uint64(f.number)<<3|uint64(f.wire))
	switch f.wire {
	case varint:
		to = appendVarint(to, f.varint)
	case counted:
		to = appendVarint(to, uint64(len(f.bytes)))
	}
	return append(to, f.bytes...)
}

func appendVarint(to []byte, number uint64) []byte {
	var bytes [binary.MaxVarintLen64]byte
	return append(to, bytes[:binary.PutUvarint(bytes[:], number)]...)
}
