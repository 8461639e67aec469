// Command standins writes a payload folder of stand-ins (internal/test/winnode/stubpayload):
//
//	standins [FLAG...] FOLDER SERVICE.EXE KUBE-LOG-RUNNER.EXE WMCO-NODE.EXE VERSION
//
// VERSION is that of the node agent.
//
//	-built FOLDER    use the executables that `make payload` wrote there, as far as it has them
//	-kubelet-prints  the kubelet prints 200 kB a second
//	-agent-ends      a program that ends at once is in place of the node agent
//
// Exit status: 0 done; 1 the folder could not be written.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"wmco/internal/test/winnode/stubpayload"
	"wmco/payload/store"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "standins:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var p stubpayload.Programs
	flags := flag.NewFlagSet("standins", flag.ContinueOnError)
	from := flags.String("built", "", "")
	flags.BoolVar(&p.KubeletPrints, "kubelet-prints", false, "")
	flags.BoolVar(&p.AgentEnds, "agent-ends", false, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if args = flags.Args(); len(args) != 5 {
		return errors.New("usage: standins [FLAG...] FOLDER SERVICE.EXE KUBE-LOG-RUNNER.EXE WMCO-NODE.EXE VERSION")
	}
	p.Version = args[4]
	for path, into := range map[string]*[]byte{args[1]: &p.Service, args[2]: &p.Runner, args[3]: &p.Agent} {
		var err error
		if *into, err = os.ReadFile(path); err != nil {
			return err
		}
	}
	if *from != "" {
		var err error
		if p.Built, err = builtPrograms(*from); err != nil {
			return err
		}
	}
	return stubpayload.Write(args[0], p)
}

// builtPrograms reads the executables of a folder.
func builtPrograms(folder string) (map[string][]byte, error) {
	s, err := store.Open(folder)
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, e := range s.Entries() {
		raw, err := s.OpenRaw(e.Name)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(raw)
		if err = errors.Join(err, raw.Close()); err != nil {
			return nil, fmt.Errorf("reading %s: %w", e.Name, err)
		}
		all[e.Name] = data
	}
	return all, nil
}
