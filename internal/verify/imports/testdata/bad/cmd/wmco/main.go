// Command wmco may import anything.
package main

import (
	_ "wmco/render"
	_ "wmco/strange"
)

func main() {}
