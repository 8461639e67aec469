// Command release makes the image of the operator and the files of a release. The Makefile calls it.
//
// Exit status: 0 done, 2 usage or a payload that is refused, 1 any other error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"wmco/internal/build/release"
	"wmco/payload/store"
)

const usage = `usage:
  release image  --out LAYOUT --payload DIR --operator linux/amd64=FILE ... [--allow-missing]   an OCI layout; prints its digest
  release files  --out DIR --image LAYOUT --program OS/ARCH=FILE ...                            archives, bills, krew manifest, notes
  release bundle|catalog --out FILE --content DIR --image LAYOUT                                the image of the OLM bundle, or of the catalog
  release sums   DIR                                                                            SHA256SUMS, and a table
  release unpack --image LAYOUT --platform linux/amd64 --out DIR                                the file system of the image`

const exitRefused = 2

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		var refused *release.RefusedError
		var invalid *store.RefusedError
		if errors.As(err, &refused) || errors.As(err, &invalid) || errors.Is(err, errUsage) {
			os.Exit(exitRefused)
		}
		os.Exit(1)
	}
}

var errUsage = errors.New(usage)

// command is what the flags say.
type command struct {
	image     release.Image
	programs  []release.Program
	layout    string
	content   string
	out       string
	platform  string
	before    string
	downloads string
}

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	c, rest, err := parse(args[1:])
	if err != nil {
		return fmt.Errorf("%w\n%w", err, errUsage)
	}
	switch {
	case args[0] == "sums" && len(rest) == 1:
		return release.Sums(rest[0], os.Stdout)
	case c.out == "" || len(rest) > 0:
		return errUsage
	case args[0] == "image":
		return c.writeImage()
	case args[0] == "files":
		return c.writeFiles()
	case args[0] == string(release.ContentBundle) || args[0] == string(release.ContentCatalog):
		return c.writeOLM(release.Content(args[0]))
	case args[0] == "unpack":
		return release.Unpack(c.layout, c.platform, c.out)
	}
	return errUsage
}

func parse(args []string) (c command, rest []string, err error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&c.out, "out", "", "where to write")
	flags.StringVar(&c.layout, "image", "", "OCI layout")
	flags.StringVar(&c.content, "content", "", "folder of an OLM bundle or of a catalog")
	flags.StringVar(&c.platform, "platform", "", "OS/ARCH")
	flags.StringVar(&c.before, "before", "", "list of executables of the release before")
	flags.StringVar(&c.downloads, "downloads", "", "URL below which the files will be")
	flags.StringVar(&c.image.Payload, "payload", "", "folder that make payload wrote")
	flags.StringVar(&c.image.Bills, "bills", "", "folder with the bills of materials of the payload")
	flags.StringVar(&c.image.License, "license", "LICENSE", "file with the license")
	flags.BoolVar(&c.image.AllowMissing, "allow-missing", false, "accept a payload that lacks executables")
	flags.StringVar(&c.image.Labels.Version, "version", "", "version of the release")
	flags.StringVar(&c.image.Labels.Revision, "revision", "", "commit")
	flags.StringVar(&c.image.Labels.Source, "source", "", "URL of the sources")
	flags.Func("created", "time of the commit, RFC 3339", func(text string) (err error) {
		c.image.Labels.Created, err = time.Parse(time.RFC3339, text)
		return err
	})
	flags.Func("operator", "the operator of a platform, OS/ARCH=FILE; repeatable", into(&c.image.Programs))
	flags.Func("program", "the command line of a platform, OS/ARCH=FILE; repeatable", into(&c.programs))
	flags.Func("shell", "what must-gather needs on a platform, OS/ARCH=FILE; repeatable", into(&c.image.Shells))
	err = flags.Parse(args)
	for i := range c.image.Shells {
		c.image.Shells[i].Name = "shell"
	}
	return c, flags.Args(), err
}

func into(list *[]release.Program) func(string) error {
	return func(text string) error {
		p, err := release.ParseProgram(text)
		*list = append(*list, p)
		return err
	}
}

func (c command) writeImage() error {
	digest, err := c.image.Write(c.out)
	if err != nil {
		return err
	}
	lacks, err := c.image.Lacks()
	if err != nil {
		return err
	}
	if len(lacks) > 0 {
		fmt.Fprintf(os.Stderr, "release: the image lacks what it was allowed to lack:\n  %s\n", strings.Join(lacks, "\n  "))
	}
	fmt.Println(digest)
	return nil
}

func (c command) writeFiles() error {
	index, err := release.Open(c.layout)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	return release.Files{
		Image: c.image, Layout: c.layout, Digest: digest.String(), Programs: c.programs, Before: c.before, Downloads: c.downloads,
	}.Write(c.out)
}

// writeOLM makes the image of the OLM bundle or of the catalog as a layout, and packs it.
func (c command) writeOLM(content release.Content) error {
	digest, err := release.OLM{Labels: c.image.Labels, Dir: c.content, Content: content}.Write(c.layout)
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return release.PackLayout(c.layout, c.out, c.image.Labels.Created)
}
