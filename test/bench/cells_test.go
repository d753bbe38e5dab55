package main

import (
	"regexp"
	"slices"
	"testing"
	"time"
)

func testPlan() *plan { return newPlan(settings{duration: time.Second, dir: "d", idle: 10, many: 20}) }

// TestPlanIsWhole: a cell names a group, and commands of that group; nothing is run
// that no cell needs.
func TestPlanIsWhole(t *testing.T) {
	p := testPlan()
	commands := map[[2]string]bool{}
	for _, g := range p.groups {
		for _, c := range g.commands {
			key := [2]string{g.name, c.name}
			if _, twice := commands[key]; twice {
				t.Errorf("%v is there twice", key)
			}
			commands[key] = false
		}
	}
	use := func(c cell, v value) {
		key := [2]string{c.group, v.command}
		if _, ok := commands[key]; !ok {
			t.Errorf("cell %q needs %v, which is not run", c.name, key)
		}
		commands[key] = true
	}
	for _, c := range p.cells {
		use(c, c.product)
		if c.reference != nil {
			use(c, *c.reference)
		}
		if c.limit == 0 && c.relation != told && c.unit != "records" && c.unit != "syncs" {
			t.Errorf("cell %q (%s) has no target", c.name, c.group)
		}
	}
	for key, used := range commands {
		if !used {
			t.Errorf("%v is run for nothing", key)
		}
	}
}

func TestPlanPassesItsSettings(t *testing.T) {
	for _, g := range testPlan().groups {
		for _, c := range g.commands {
			switch {
			case c.args[0] == "demo": // it keeps its data where it wants, and removes it
			case c.tool == felix && !slices.Contains(c.args, "--json"):
				t.Errorf("%s: no --json", g.name)
			case c.tool == felix && !slices.Contains(c.args, "--dir"), c.tool == natsbench && !slices.Contains(c.args, "-dir"):
				t.Errorf("%s: %s keeps its data elsewhere", g.name, c.name)
			case c.tool == natsbench && !slices.Contains(c.args, "-tls"):
				t.Errorf("%s: NATS without TLS is another product", g.name)
			}
		}
	}
}

func TestOnly(t *testing.T) {
	p := testPlan().only(regexp.MustCompile("^ping"))
	if len(p.groups) != 1 || len(p.cells) != 2 {
		t.Errorf("%d groups, %d cells", len(p.groups), len(p.cells))
	}
}
