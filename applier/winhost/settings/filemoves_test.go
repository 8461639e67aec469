package settings

import (
	"encoding/binary"
	"testing"
	"unicode/utf16"
)

// TestFilesThatWaitForABoot: the program of a removal does not count, whatever else there is.
func TestFilesThatWaitForABoot(t *testing.T) {
	const ours = `\??\C:\Windows\WMCO-removal-0123456789ab.exe` + "\x00\x00"
	for text, want := range map[string]bool{
		"":   false,
		ours: false, ours + ours + "\x00": false,
		`\??\C:\old.dll` + "\x00\x00\x00":                                                           true,
		ours + `\??\C:\old.dll` + "\x00\x00\x00":                                                    true,
		`\??\C:\new.dll` + "\x00" + `!\??\C:\old.dll` + "\x00":                                      true,
		`\??\C:\Windows\wmco-removal-0123456789ab.exe` + "\x00" + `\??\C:\k\other.exe` + "\x00\x00": true,
		`\??\C:\Windows\wmco` + "\x00\x00":                                                          true,
	} {
		var list []byte
		for _, u := range utf16.Encode([]rune(text)) {
			list = binary.LittleEndian.AppendUint16(list, u)
		}
		if got := hasOtherFileMoves(list); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if hasOtherFileMoves([]byte{0, 0, 0}) {
		t.Error("half a character")
	}
}
