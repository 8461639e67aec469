package settings

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"wmco/bundle"
)

// hasOtherFileMoves reports whether a list of PendingFileRenameOperations has a file that is replaced or removed with the
// next boot, but for the program of a removal (applier.Engine.RetireRemoval): a host that joins again need not boot for
// it. The list has pairs of names in UTF-16, each with a zero at its end. The second one is empty for a file that is
// removed (learn.microsoft.com/windows/win32/api/winbase/nf-winbase-movefileexw).
func hasOtherFileMoves(list []byte) bool {
	units := make([]uint16, len(list)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(list[2*i:])
	}
	names := strings.Split(string(utf16.Decode(units)), "\x00")
	for i := 0; i+1 < len(names) && names[i] != ""; i += 2 {
		path := bundle.FoldPath(strings.TrimPrefix(names[i], `\??\`))
		if names[i+1] != "" || !strings.HasPrefix(path, bundle.FoldPath(bundle.RemovalProgram)) {
			return true
		}
	}
	return false
}
