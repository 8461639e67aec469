package settings

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/winhost/keepertest"
	"wmco/bundle"
)

// fakeKeeper has settings without values, and counts its reads.
type fakeKeeper struct {
	there map[string]bool
	err   error
	reads int
}

func (f *fakeKeeper) Read(_ context.Context, names []string) ([]plan.Setting, error) {
	f.reads++
	all := make([]plan.Setting, len(names))
	for i, name := range names {
		all[i].Present = f.there[name]
	}
	return all, f.err
}

func (f *fakeKeeper) Write(_ context.Context, s plan.Setting) error {
	if f.err == nil {
		f.there[s.Name] = s.Present
	}
	return f.err
}

func TestReadAsksEachKeeperOnceAndKeepsTheOrder(t *testing.T) {
	variables, features := &fakeKeeper{there: map[string]bool{"b": true}}, &fakeKeeper{there: map[string]bool{"f": true}}
	s := Keepers{bundle.KindVariable: variables, bundle.KindFeature: features}
	asked := []plan.Setting{
		{Kind: bundle.KindVariable, Name: "a"}, {Kind: bundle.KindFeature, Name: "f"}, {Kind: bundle.KindVariable, Name: "b", Value: "ignored"},
	}
	got, err := s.Read(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	want := []plan.Setting{
		{Kind: bundle.KindVariable, Name: "a"}, {Kind: bundle.KindFeature, Name: "f", Present: true}, {Kind: bundle.KindVariable, Name: "b", Present: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if variables.reads != 1 || features.reads != 1 {
		t.Errorf("the keepers were read %d and %d times", variables.reads, features.reads)
	}
}

func TestSettingsThatTheHostCannotHaveAreUnavailable(t *testing.T) {
	s := Keepers{bundle.KindExclusion: &fakeKeeper{err: applier.ErrNoSetting}}
	x := plan.Setting{Kind: bundle.KindExclusion, Name: `C:\k\x.exe`}
	got, err := s.Read(t.Context(), []plan.Setting{x})
	want := x
	want.Unavailable = true
	if diff := cmp.Diff([]plan.Setting{want}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if err := s.Write(t.Context(), x); err != nil {
		t.Errorf("removing: %v", err)
	}
	x.Present = true
	if err := s.Write(t.Context(), x); !errors.Is(err, applier.ErrNoSetting) {
		t.Errorf("setting: %v", err)
	}
}

func TestErrorsOfKeepersAreReturned(t *testing.T) {
	broken := errors.New("broken")
	s := Keepers{bundle.KindExclusion: &fakeKeeper{err: broken}}
	x := plan.Setting{Kind: bundle.KindExclusion, Name: "x"}
	unknown := x
	unknown.Unknown = "reading settings of kind exclusion: broken"
	got, err := s.Read(t.Context(), []plan.Setting{x})
	if diff := cmp.Diff([]plan.Setting{unknown}, got); diff != "" || err != nil {
		t.Errorf("reading: %v (-want +got):\n%s", err, diff)
	}
	if err := s.Write(t.Context(), x); !errors.Is(err, broken) {
		t.Errorf("writing: %v", err)
	}
	x.Kind = bundle.KindFile
	if _, err := s.Read(t.Context(), []plan.Setting{x}); err == nil {
		t.Error("an unknown kind was read")
	}
	if err := s.Write(t.Context(), x); err == nil {
		t.Error("an unknown kind was written")
	}
}

// fakeVariables keeps values with their types, as the registry does.
type fakeVariables struct {
	values            map[string]string
	types             map[string]expansion
	writes, announced int
}

func (f *fakeVariables) getVariable(name string) (string, bool, error) {
	value, ok := f.values[name]
	return value, ok, nil
}

func (f *fakeVariables) setVariable(name, value string, e expansion) error {
	f.writes++
	f.values[name], f.types[name] = value, e
	return nil
}

func (f *fakeVariables) unsetVariable(name string) error {
	f.writes++
	delete(f.values, name)
	return nil
}

func (f *fakeVariables) announceChange() { f.announced++ }

func TestVariables(t *testing.T) {
	f := &fakeVariables{values: map[string]string{}, types: map[string]expansion{}}
	keepertest.CheckLifecycle(t, variableKeeper{f}, &f.writes, "HTTP_PROXY", "http://proxy", "", `C:\k;%PATH%`)
	if f.announced != f.writes {
		t.Errorf("%d changes were announced %d times", f.writes, f.announced)
	}
	for value, want := range map[string]expansion{"": literal, "100%": literal, "p%40ss": literal, `%SystemRoot%\x`: expands} {
		if got := expansionOf(value); got != want {
			t.Errorf("%q is of type %d, want %d", value, got, want)
		}
	}
}

type fakeRoots struct {
	all    map[string]bool
	writes int
}

func (f *fakeRoots) TrustedRoots() ([][]byte, error) {
	var all [][]byte
	for der := range f.all {
		all = append(all, []byte(der))
	}
	return all, nil
}

func (f *fakeRoots) AddRoot(der []byte) error { f.writes++; f.all[string(der)] = true; return nil }

func (f *fakeRoots) RemoveRoot(der []byte) error { f.writes++; delete(f.all, string(der)); return nil }

func TestCertificates(t *testing.T) {
	f := &fakeRoots{all: map[string]bool{"unmanaged": true}}
	der := exampleCA(t)
	keepertest.CheckLifecycle(t, certificateKeeper{f}, &f.writes, string(bundle.Of(der)), string(der))
	if !f.all["unmanaged"] || len(f.all) != 1 {
		t.Errorf("left: %d certificates", len(f.all))
	}
	garbage := plan.Setting{Name: string(bundle.Of([]byte("x"))), Value: "x", Present: true}
	if err := (certificateKeeper{f}).Write(t.Context(), garbage); err == nil {
		t.Error("garbage was added")
	}
	garbage.Value = string(der)
	if err := (certificateKeeper{f}).Write(t.Context(), garbage); err == nil {
		t.Error("a certificate with another digest was added")
	}
}

// fakeImage behaves like DISM: a change is pending until the next boot.
type fakeImage struct {
	states map[string]featureState
	writes int
}

func (f *fakeImage) listFeatures() (map[string]featureState, error) { return f.states, nil }

func (f *fakeImage) enableFeature(name string) error {
	f.writes++
	f.states[name] = featureInstallPending
	return nil
}

func (f *fakeImage) disableFeature(name string) error {
	f.writes++
	if f.states[name] == featureInstallPending {
		f.states[name] = 0
		return nil
	}
	f.states[name] = featureUninstallPending
	return nil
}

func TestFeatures(t *testing.T) {
	f := &fakeImage{states: map[string]featureState{"Containers": 0, "On": featureInstalled, "Also-On": featureInstalled}}
	k := featureKeeper{f}
	steps := []struct {
		name string
		set  plan.Setting
		boot featureState
		want plan.Setting
	}{
		{"enabled", plan.Setting{Name: "containers", Present: true}, 0, plan.Setting{Present: true, Pending: true}},
		{"booted", plan.Setting{Name: "Containers", Present: true}, featureInstalled, plan.Setting{Present: true}},
		{"disabled", plan.Setting{Name: "Containers"}, 0, plan.Setting{Pending: true}},
		{"booted again", plan.Setting{Name: "Containers"}, 2, plan.Setting{}},
	}
	for _, s := range steps {
		if s.boot != 0 {
			f.states["Containers"] = s.boot
		}
		s.set.Name = "Containers"
		if err := k.Write(t.Context(), s.set); err != nil {
			t.Fatal(err)
		}
		keepertest.CheckRead(t, k, "CONTAINERS", s.want)
	}
	if f.writes != 2 {
		t.Errorf("%d changes", f.writes)
	}
	on, err := enabledFeatures(f)
	if diff := cmp.Diff([]string{"Also-On", "On"}, on); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	keepertest.CheckRead(t, k, "No-Such-Feature", plan.Setting{})
}

type fakeDefender struct {
	programs []string
	writes   int
}

func (f *fakeDefender) listExclusions() ([]string, error) { return f.programs, nil }

func (f *fakeDefender) addExclusion(p string) error {
	f.writes++
	f.programs = append(f.programs, p)
	return nil
}

func (f *fakeDefender) removeExclusion(string) error {
	f.writes++
	f.programs = f.programs[:1]
	return nil
}

func TestExclusions(t *testing.T) {
	f := &fakeDefender{programs: []string{`C:\somebody\else.exe`}}
	keepertest.CheckLifecycle(t, exclusionKeeper{f}, &f.writes, `C:\k\containerd\containerd.exe`, "")
	f.programs = append(f.programs, `c:\K\x.EXE`)
	keepertest.CheckRead(t, exclusionKeeper{f}, `C:\k\x.exe`, plan.Setting{Present: true})
	if diff := cmp.Diff([]string{"a", "b"}, textsOfList([]any{"a", 1, nil, "b"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if textsOfList(nil) != nil {
		t.Error("texts of nil")
	}
}

// fakeName is the name of a host, which changes with a boot.
type fakeName struct {
	active, next string
	writes       int
}

func (f *fakeName) readNames() (active, next string, err error) { return f.active, f.next, nil }

func (f *fakeName) renameComputer(name string) error { f.writes++; f.next = name; return nil }

func TestHostName(t *testing.T) {
	f := &fakeName{active: "old", next: "old"}
	k := nameKeeper{f}
	keepertest.CheckRead(t, k, bundle.Computer, plan.Setting{Value: "old", Present: true})
	for range 2 {
		if err := k.Write(t.Context(), plan.Setting{Name: bundle.Computer, Value: "new", Present: true}); err != nil {
			t.Fatal(err)
		}
		keepertest.CheckRead(t, k, bundle.Computer, plan.Setting{Value: "new", Present: true, Pending: true})
	}
	f.active = f.next
	keepertest.CheckRead(t, k, bundle.Computer, plan.Setting{Value: "new", Present: true})
	if err := k.Write(t.Context(), plan.Setting{Name: bundle.Computer}); err != nil || f.writes != 1 {
		t.Errorf("%d renames, %v", f.writes, err)
	}
}

func TestAHostNameThatIsReturnedBeforeItsBoot(t *testing.T) {
	for _, tt := range []struct {
		what, host, activeShort, nextShort string
		want                               bool
	}{
		{"nothing is renamed", "win", "WIN", "WIN", false},
		{"the old name is returned until the boot", "win", "WIN", "NODE-1", false},
		{"the new name is returned before the boot", "node-1", "WIN", "NODE-1", true},
		{"a new name longer than NetBIOS allows", "a-name-of-22-characters", "WIN", "A-NAME-OF-22-CH", true},
		{"a NetBIOS name of its own", "node-1", "WIN", "WIN", false},
		{"no NetBIOS name is known", "node-1", "", "NODE-1", false},
	} {
		if got := isRenamed(tt.host, tt.activeShort, tt.nextShort); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.what, got, tt.want)
		}
	}
}

func TestNextName(t *testing.T) {
	tests := map[string]struct{ active, nextHost, activeShort, nextShort, want string }{
		"no name is recorded":               {"win", "", "", "", "win"},
		"the current name is recorded":      {"win", "win", "WIN", "WIN", "win"},
		"another name is recorded":          {"win", "node-1", "WIN", "NODE-1", "node-1"},
		"a name longer than NetBIOS allows": {"win", "a-name-of-22-characters", "WIN", "A-NAME-OF-22-CH", "a-name-of-22-characters"},
		"only the NetBIOS name differs":     {"win", "", "WIN", "NODE-1", "NODE-1"},
		"only the case differs":             {"Win", "WIN", "WIN", "WIN", "Win"},
		"a long current name is recorded":   {"a-name-of-22-characters", "a-name-of-22-characters", "A-NAME-OF-22-CH", "A-NAME-OF-22-CH", "a-name-of-22-characters"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nameAfterNextBoot(tt.active, tt.nextHost, tt.activeShort, tt.nextShort); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// exampleCA returns the DER of a certificate.
func exampleCA(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestFeaturesAreRemembered(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	f := &fakeImage{states: map[string]featureState{"On": featureInstalled}}
	asked := &countingImage{featureImage: f}
	r := &remembered{featureImage: asked, now: func() time.Time { return now }}
	for _, step := range []struct {
		later time.Duration
		do    func() error
		want  int
	}{
		{0, nil, 1},
		{time.Second, nil, 1},
		{rememberFor, nil, 2},
		{-time.Hour, nil, 3},
		{0, func() error { return r.enableFeature("On") }, 4},
	} {
		now = now.Add(step.later)
		if step.do != nil {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.listFeatures(); err != nil || asked.n != step.want {
			t.Errorf("after %s: read %d times, want %d: %v", step.later, asked.n, step.want, err)
		}
	}
}

type countingImage struct {
	featureImage
	n int
}

func (c *countingImage) listFeatures() (map[string]featureState, error) {
	c.n++
	return c.featureImage.listFeatures()
}
