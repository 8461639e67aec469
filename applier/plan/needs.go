package plan

import (
	"wmco/bundle"
)

// Need is a content that a step needs.
type Need struct {
	Digest  bundle.Digest
	Content Content
}

// NeededContents returns the contents without which the step cannot be done. A file that is written for its access
// alone needs none.
func (s Step) NeededContents() []Need {
	switch s.Verb {
	case VerbWrite:
		if s.Reason != ReasonAccess {
			return []Need{{s.File.Digest, s.File.Content}}
		}
	case VerbSet:
		return s.Setting.Value.neededContents()
	case VerbPut:
		var list []Need
		for _, v := range s.Service.Variables {
			list = append(list, v.Value.neededContents()...)
		}
		return list
	case VerbClear, VerbMake, VerbUnset, VerbStop, VerbDelete, VerbRemove, VerbStart:
	}
	return nil
}

func (v Value) neededContents() []Need {
	if v.Known {
		return nil
	}
	return []Need{{v.Digest, v.Content}}
}
