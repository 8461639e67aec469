// Command pull pulls images as each version of containerd does by the hosts files of a folder, without keeping them:
//
//	pull FOLDER IMAGE...
//
// A line for each pull has the version and the digest, or the error. Built for Windows, it shows that containerd there gets what a node is configured for.
package main

import (
	"context"
	"fmt"
	"os"

	"wmco/internal/verify/resolvers"
)

func main() {
	client := resolvers.Client{Root: os.Args[1], Credentials: func(string) (string, string, error) { return "", "", nil }}
	for _, image := range os.Args[2:] {
		for _, e := range resolvers.Engines() {
			pulled, err := e.Pull(context.Background(), client, image)
			if err != nil {
				fmt.Printf("%s %s error: %v\n", e.Version, image, err)
				continue
			}
			fmt.Printf("%s %s %s\n", e.Version, image, pulled.Digest)
		}
	}
}
