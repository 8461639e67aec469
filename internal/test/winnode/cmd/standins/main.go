// Command standins writes a payload folder of stand-ins (internal/test/winnode/stubpayload):
//
//	standins FOLDER SERVICE.EXE KUBE-LOG-RUNNER.EXE WMCO-NODE.EXE VERSION
//
// VERSION is that of the node agent.
//
// Exit status: 0 done; 1 the folder could not be written.
package main

import (
	"errors"
	"fmt"
	"os"

	"wmco/internal/test/winnode/stubpayload"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "standins:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return errors.New("usage: standins FOLDER SERVICE.EXE KUBE-LOG-RUNNER.EXE WMCO-NODE.EXE VERSION")
	}
	p := stubpayload.Programs{Version: args[4]}
	for path, into := range map[string]*[]byte{args[1]: &p.Service, args[2]: &p.Runner, args[3]: &p.Agent} {
		var err error
		if *into, err = os.ReadFile(path); err != nil {
			return err
		}
	}
	return stubpayload.Write(args[0], p)
}
