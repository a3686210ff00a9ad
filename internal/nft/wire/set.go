package wire

import "sluice/internal/nft"

// AddSet makes a set, without its elements.
func (b *Batch) AddSet(s *nft.Set) {
	b.sets++
	b.start(NewSet, flagCreate, subject{"set", s.Name})
	d := describe(s)
	b.setHead(s.Name, d.Flags, d.KeyType, d.KeyLen)
	if d.Flags&flagMap != 0 {
		b.buf.uint32(setDataType, d.DataType)
		b.buf.uint32(setDataLen, d.DataLen)
	}
	b.buf.uint32(setID, b.sets)
	b.description(s)
	if s.Timeout > 0 {
		b.buf.uint64(setTimeout, uint64(s.Timeout.Milliseconds()))
	}
	b.setUserdata(s)
	if s.Counter {
		at := b.buf.nest(setExpr)
		b.buf.text(exprName, "counter")
		b.buf.close(b.buf.nest(exprData))
		b.buf.close(at)
	}
	b.endMessage()
}

func (b *Batch) setHead(name string, flags, keyType, keyLen uint32) {
	b.buf.text(setTable, b.table)
	b.buf.text(setName, name)
	b.buf.uint32(setFlags, flags)
	b.buf.uint32(setKeyType, keyType)
	b.buf.uint32(setKeyLen, keyLen)
}

// description tells the size, and where in a key its fields are: only ranges of several fields need that.
func (b *Batch) description(s *nft.Set) {
	ranges := s.Interval && len(s.Key) > 1
	if s.Size == 0 && !ranges {
		return
	}
	at := b.buf.nest(setDesc)
	if s.Size != 0 {
		b.buf.uint32(descSize, s.Size)
	}
	if ranges {
		concat := b.buf.nest(descConcat)
		for _, f := range s.Key {
			field := b.buf.nest(listElem)
			b.buf.uint32(fieldLen, uint32(f.Type.Size()))
			b.buf.close(field)
		}
		b.buf.close(concat)
	}
	b.buf.close(at)
}

// describe is a set as the kernel will tell of it. Handle and Table are left out.
func describe(s *nft.Set) Set {
	d := Set{
		Family:  FamilyInet,
		Name:    s.Name,
		Comment: nft.CleanComment(s.Comment),
		Flags:   flagsOf(s),
		KeyType: typeNumber(s.Key),
		KeyLen:  uint32(keyLen(s.Key)),
		Size:    s.Size,
		Timeout: s.Timeout,
		Counter: s.Counter,
	}
	switch {
	case s.Verdicts:
		d.DataType = verdictType
	case len(s.Data) > 0:
		d.DataType, d.DataLen = typeNumber(s.Data), uint32(keyLen(s.Data))
	}
	return d
}

func flagsOf(s *nft.Set) (flags uint32) {
	if s.Verdicts || len(s.Data) > 0 {
		flags |= flagMap
	}
	if s.Interval {
		flags |= flagInterval
		if len(s.Key) > 1 {
			flags |= flagConcat
		}
	}
	if s.Dynamic {
		flags |= flagTimeout | flagEval
	}
	return flags
}

// typeNumber is nft's number of a type: 6 bits for each field. The kernel keeps it for nft and pays no heed to it.
func typeNumber(fields []nft.Field) (n uint32) {
	for _, f := range fields {
		n = n<<6 | typeNumbers[f.Type]
	}
	return n
}

// typeNumbers are nft's numbers of types, enum datatypes.
var typeNumbers = [...]uint32{
	nft.Integer: 4, nft.IPv4Addr: 7, nft.IPv6Addr: 8, nft.InetProto: 12, nft.InetService: 13, nft.ClassID: 23,
	nft.PacketMark: 19,
}

// keyLen is the length of a key or data in bytes. A field alone is not padded.
func keyLen(fields []nft.Field) (n int) {
	if len(fields) == 1 {
		return fields[0].Type.Size()
	}
	for _, f := range fields {
		n += (f.Type.Size() + 3) &^ 3
	}
	return n
}
