package objects_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"wmco/controller/gather/objects"
)

func TestMutations(t *testing.T) {
	secs, _ := strconv.Atoi(os.Getenv("MUT_SECS"))
	if secs == 0 { t.Skip() }
	seed0, _ := strconv.Atoi(os.Getenv("MUT_SEED"))
	end := time.Now().Add(time.Duration(secs) * time.Second)
	pieces := []string{"\n", " ", "  ", "- ", "\n- ", ": ", "kind: Node", "\nkind: Node", "\"", "'", "{", "}", "[", "]", ",", "#", " # ", "&a ", "*a", "<<: *a", "|", ">", "\t", "? ", "!!str ", "---\n", "\n---\n", "...\n", "items:\n", "metadata:\n  name: z\n", "apiVersion: v1\n", "kind: NodeList\n", "kind: List\n", "\\", "\r", "null", "~", "\"kind\": \"Node\"", "\u2028", "name: q", "@", "`", "%", "-", "\n  ", "\n    "}
	found, fails, n := 0, 0, 0
	for i := uint64(seed0); time.Now().Before(end); i++ {
		w := &stylist{Rand: rand.New(rand.NewPCG(i, 7)), want: []string{}}
		for range 1 + w.IntN(3) { w.document() }
		b := w.text.String()
		for range w.IntN(4) {
			switch w.IntN(5) {
			case 0: // insert
				p := w.IntN(len(b)+1); b = b[:p] + w.one(pieces...) + b[p:]
			case 1: // delete
				if len(b) == 0 { continue }
				p := w.IntN(len(b)); q := min(len(b), p+1+w.IntN(4)); b = b[:p] + b[q:]
			case 2: // line ops: insert at line start
				ls := strings.SplitAfter(b, "\n"); k := w.IntN(len(ls)); ls[k] = w.one(pieces...) + ls[k]; b = strings.Join(ls, "")
			case 3: // swap lines
				ls := strings.SplitAfter(b, "\n"); x, y := w.IntN(len(ls)), w.IntN(len(ls)); ls[x], ls[y] = ls[y], ls[x]; b = strings.Join(ls, "")
			case 4: // dedent line
				ls := strings.SplitAfter(b, "\n"); k := w.IntN(len(ls)); ls[k] = strings.TrimPrefix(ls[k], w.one(" ", "  ", "    ")); b = strings.Join(ls, "")
			}
		}
		n++
		set := readBytes(t, []byte(b))
		ids := wantedIn([]byte(b))
		found += len(ids)
		for _, id := range ids {
			if !slices.ContainsFunc(set.Objects, func(o objects.Object) bool { return nameOf(o) == id }) {
				if len(errorsOf(set)) > 0 { continue }
				fails++
				if fails < 6 { t.Errorf("seed %d: %s was passed over in\n%s\n%q", i, id, b, b) }
			}
		}
	}
	t.Logf("%d documents, %d reference objects, %d failures", n, found, fails)
}
