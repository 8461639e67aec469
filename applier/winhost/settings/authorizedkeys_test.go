package settings

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/applier/winhost/keepertest"
	"wmco/bundle"
)

// fakeKeysFile is a file of a host with OpenSSH, unless absent is set.
type fakeKeysFile struct {
	text        string
	unprotected bool
	absent      bool
	writes      int
}

func (f *fakeKeysFile) readKeys(context.Context) ([]byte, bool, error) {
	if f.absent {
		return nil, false, applier.ErrNoSetting
	}
	return []byte(f.text), !f.unprotected, nil
}

func (f *fakeKeysFile) writeKeys(_ context.Context, text []byte) error {
	f.text, f.unprotected = string(text), false
	f.writes++
	return nil
}

const otherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

func TestAnAuthorizedKeyIsAddedOnceAndRemoved(t *testing.T) {
	f := &fakeKeysFile{}
	keepertest.CheckLifecycle(t, authorizedKeysKeeper{f}, &f.writes, selftest.KeyFingerprint, selftest.KeyLine)
}

// TestKeysOfAnotherUserAreNotTaken: sshd refuses the file of a user, and would not if it were written again for Administrators.
func TestKeysOfAnotherUserAreNotTaken(t *testing.T) {
	folder := plan.FileInfo{Path: bundle.AuthorizedKeysFolder, Kind: plan.FileDirectory, Owner: plan.OwnerAdmins, Access: plan.AccessOther}
	file := plan.FileInfo{Path: bundle.AuthorizedKeysFile, Kind: plan.FileRegular, Owner: plan.OwnerAdmins, Access: plan.AccessOther}
	theirs := func(f plan.FileInfo) plan.FileInfo { f.Owner = plan.OwnerOther; return f }
	absent := plan.FileInfo{Path: bundle.AuthorizedKeysFile, Owner: plan.OwnerOther}
	for name, c := range map[string]struct {
		folder, file plan.FileInfo
		foreign      string
	}{
		"of administrators":    {folder, file, ""},
		"no file":              {folder, absent, ""},
		"the file of a user":   {folder, theirs(file), bundle.AuthorizedKeysFile},
		"the folder of a user": {theirs(folder), absent, bundle.AuthorizedKeysFolder},
	} {
		err := checkKeysOwners(c.folder, c.file)
		if (err != nil) != (c.foreign != "") || err != nil && !strings.HasPrefix(err.Error(), c.foreign+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLinesOfOthersStay: comments, other keys, options, line breaks and an incomplete last line.
func TestLinesOfOthersStay(t *testing.T) {
	others := "\ufeff# the team's keys\r\n" + otherKey + " ann@example.com\r\n\n" + `command="echo \" ` + selftest.KeyLine + `" ` + otherKey + "\n" + "#" + selftest.KeyLine + "\n"
	mine := plan.Setting{Kind: bundle.KindAuthorizedKey, Name: selftest.KeyFingerprint, Value: selftest.KeyLine, Present: true}
	for name, c := range map[string]struct{ before, with, without string }{
		"an empty file":         {"", selftest.KeyLine + "\r\n", ""},
		"other lines":           {others, others + selftest.KeyLine + "\r\n", others},
		"no line break at last": {otherKey, otherKey + "\r\n" + selftest.KeyLine + "\r\n", otherKey + "\r\n"},
		"the key with options":  {others + `from="10.0.0.0/8, ::1" ` + selftest.KeyLine + " old", others + `from="10.0.0.0/8, ::1" ` + selftest.KeyLine + " old", others},
		"the key twice":         {selftest.KeyLine + "\n" + otherKey + "\n\t" + selftest.KeyLine + " x\n", selftest.KeyLine + "\n" + otherKey + "\n\t" + selftest.KeyLine + " x\n", otherKey + "\n"},
		"a byte order mark":     {"\ufeff" + selftest.KeyLine + "\n", "\ufeff" + selftest.KeyLine + "\n", ""},
	} {
		f := &fakeKeysFile{text: c.before}
		k := authorizedKeysKeeper{f}
		if err := k.Write(t.Context(), mine); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.with, f.text); diff != "" {
			t.Errorf("%s, added (-want +got):\n%s", name, diff)
		}
		keepertest.CheckRead(t, k, mine.Name, plan.Setting{Value: selftest.KeyLine, Present: true})
		if err := k.Write(t.Context(), plan.Setting{Kind: mine.Kind, Name: mine.Name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.without, f.text); diff != "" {
			t.Errorf("%s, removed (-want +got):\n%s", name, diff)
		}
		keepertest.CheckRead(t, k, mine.Name, plan.Setting{})
	}
}

// TestAFileThatOthersMayChangeIsWrittenAgain: sshd ignores it as it is.
func TestAFileThatOthersMayChangeIsWrittenAgain(t *testing.T) {
	f := &fakeKeysFile{text: selftest.KeyLine + "\n", unprotected: true}
	k := authorizedKeysKeeper{f}
	keepertest.CheckRead(t, k, selftest.KeyFingerprint, plan.Setting{Value: otherAccess, Present: true})
	if err := k.Write(t.Context(), plan.Setting{Name: selftest.KeyFingerprint, Value: selftest.KeyLine, Present: true}); err != nil || f.unprotected || f.writes != 1 {
		t.Errorf("%v %+v", err, f)
	}
}

// TestSSHDReadsAFileOfAdministratorsAlone: the owner counts as much as who has access.
func TestSSHDReadsAFileOfAdministratorsAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		file  plan.FileInfo
		reads bool
	}{
		{"as the agent writes it", plan.FileInfo{Access: bundle.AccessAdmins, Owner: plan.OwnerAdmins}, true},
		{"owned by a user", plan.FileInfo{Access: bundle.AccessAdmins, Owner: plan.OwnerOther}, false},
		{"owned by a user, and Wine does not know the access", plan.FileInfo{Owner: plan.OwnerOther}, false},
		{"users may read it", plan.FileInfo{Access: bundle.AccessUsers, Owner: plan.OwnerAdmins}, false},
		{"everybody may write it", plan.FileInfo{Access: plan.AccessOther, Owner: plan.OwnerAdmins}, false},
		{"neither is known, under Wine", plan.FileInfo{}, true},
	} {
		c.file.Kind = plan.FileRegular
		if got := keysProtected(c.file); got != c.reads {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAValueOfAnotherKeyIsRefused(t *testing.T) {
	f := &fakeKeysFile{}
	for _, value := range []string{"", otherKey, selftest.KeyLine + "\n" + otherKey, "cert-authority " + selftest.KeyLine, selftest.KeyLine + " x", strings.Replace(selftest.KeyLine, "AAAA", "AAAA\n", 1)} {
		err := authorizedKeysKeeper{f}.Write(t.Context(), plan.Setting{Name: selftest.KeyFingerprint, Value: value, Present: true})
		if err == nil || f.writes > 0 {
			t.Errorf("%q: %v, %q", value, err, f.text)
		}
	}
}

func TestAHostWithoutOpenSSHHasNoAuthorizedKeys(t *testing.T) {
	k := Keepers{bundle.KindAuthorizedKey: authorizedKeysKeeper{&fakeKeysFile{absent: true}}}
	got, err := k.Read(t.Context(), []plan.Setting{{Kind: bundle.KindAuthorizedKey, Name: selftest.KeyFingerprint}})
	if err != nil || len(got) != 1 || !got[0].Unavailable {
		t.Errorf("%+v, %v", got, err)
	}
	if err := k.Write(t.Context(), plan.Setting{Kind: bundle.KindAuthorizedKey, Name: selftest.KeyFingerprint}); err != nil {
		t.Errorf("removing: %v", err)
	}
}
