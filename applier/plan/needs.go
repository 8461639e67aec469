package plan

import (
	"wmco/applier/protocol"
	"wmco/bundle"
)

// Need is a content that a step needs.
type Need struct {
	Digest  bundle.Digest
	Content Content
}

// NeededContents returns the contents that the step needs. A change of the access alone needs none.
func (s Step) NeededContents() []Need {
	switch s.Verb {
	case protocol.VerbWrite:
		if s.Reason != protocol.ReasonAccess {
			return []Need{{s.File.Digest, s.File.Content}}
		}
	case protocol.VerbSet:
		return s.Setting.Value.neededContents()
	case protocol.VerbPut:
		var list []Need
		for _, v := range s.Service.Variables {
			list = append(list, v.Value.neededContents()...)
		}
		return list
	case protocol.VerbClear, protocol.VerbMake, protocol.VerbUnset, protocol.VerbStop, protocol.VerbDelete, protocol.VerbRemove, protocol.VerbStart:
	}
	return nil
}

func (v Value) neededContents() []Need {
	if v.Known {
		return nil
	}
	return []Need{{v.Digest, v.Content}}
}
