package jointest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"syscall"
)

// usage is what an operator costs.
type usage struct {
	Goroutines int
	// Begun are those of the operator and of its SSH connections, by the function that has begun them.
	Begun map[string]int
	// Heap and Resident are in bytes.
	Heap, Resident uint64
}

// grown returns what there is more of than before, by this many or more.
func (u usage) grown(before usage, by int) map[string]string {
	more := map[string]string{}
	for function, n := range u.Begun {
		if n >= before.Begun[function]+by {
			more[function] = fmt.Sprintf("%d after %d", n, before.Begun[function])
		}
	}
	return more
}

// begun matches the function of a stack that has begun the goroutine.
var begun = regexp.MustCompile(`(?m)^created by ((?:wmco/|golang\.org/x/crypto/ssh)\S+)`)

// countBegun counts the goroutines of this process by the function that has begun them.
func countBegun() map[string]int {
	var stacks bytes.Buffer
	const withCreators = 2
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, withCreators) // into memory
	all := map[string]int{}
	for _, m := range begun.FindAllStringSubmatch(stacks.String(), -1) {
		all[m[1]]++
	}
	return all
}

// measure prints the usage of this process whenever it is asked to by a signal.
func measure() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	for range asked {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		u := usage{Goroutines: runtime.NumGoroutine(), Begun: countBegun(), Heap: m.HeapAlloc}
		if text, err := os.ReadFile("/proc/self/statm"); err == nil {
			var size, pages uint64
			_, _ = fmt.Sscan(string(text), &size, &pages)
			u.Resident = pages * uint64(os.Getpagesize())
		}
		text, _ := json.Marshal(u) // it holds numbers only
		fmt.Println(string(text))
	}
}

// usage asks the process what it costs.
func (o *operator) usage() usage {
	o.t.Helper()
	must(o.t, o.Process.Signal(syscall.SIGUSR1))
	line, err := o.out.ReadString('\n')
	must(o.t, err)
	var u usage
	must(o.t, json.Unmarshal([]byte(line), &u))
	return u
}
