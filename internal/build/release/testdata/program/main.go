// Command program stands for a program of a release in tests.
package main

import "fmt"

func main() { fmt.Println("started") }
