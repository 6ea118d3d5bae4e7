// Judges the transparency log of a service with golang.org/x/mod/sumdb: package note verifies notes, and tlog verifies proofs and roots from tiles.
// judge URL PAIRS ROUNDS: each round reads the newest checkpoint, which must extend the previous one, and checks PAIRS pairs.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

type service struct {
	Log struct {
		Prefix        string
		Origin        string
		CheckpointKey string
	}
}

type leaf struct {
	Index     int64
	ChamberId *int64
	Did       *string
	EventId   int64
}

var base string

func get(path string) []byte {
	for attempt := 0; ; attempt++ {
		body, err := try(path)
		if err == nil {
			return body
		}
		// The service may be restarting.
		if attempt == 100 {
			log.Fatalf("GET %s: %v", path, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func try(path string) ([]byte, error) {
	response, err := http.Get(base + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != 200 {
		err = fmt.Errorf("%d %s", response.StatusCode, body)
	}
	return body, err
}

type tiles struct{ prefix string }

func (t tiles) Height() int { return height }

// C2SP tlog-tiles uses the paths of the checksum database without the height.
func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var data [][]byte
	for _, tile := range wanted {
		path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
		data = append(data, get(t.prefix+"/"+path))
	}
	return data, nil
}

func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}

func must(err error, what string, args ...any) {
	if err != nil {
		log.Fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}

// Returns the three lines of a checkpoint, from a note that the key has signed.
func open(text []byte, verifier note.Verifier) tlog.Tree {
	opened, err := note.Open(text, note.VerifierList(verifier))
	must(err, "the note %q", text)
	lines := strings.Split(opened.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	must(err, "the size %q", lines[1])
	root, err := tlog.ParseHash(lines[2])
	must(err, "the root %q", lines[2])
	if lines[0] != verifier.Name() {
		log.Fatalf("the origin is %s, but the key belongs to %s", lines[0], verifier.Name())
	}
	return tlog.Tree{N: size, Hash: root}
}

func entriesOf(prefix string, size int64) [][]byte {
	var entries [][]byte
	for n := int64(0); n*256 < size; n++ {
		width := size - n*256
		if width > 256 {
			width = 256
		}
		tile := tlog.Tile{H: height, L: 0, N: n, W: int(width)}
		bundle := get(prefix + "/" + strings.Replace(tile.Path(), "tile/8/0/", "tile/entries/", 1))
		for len(bundle) > 0 {
			length := binary.BigEndian.Uint16(bundle)
			entries = append(entries, bundle[2:2+length])
			bundle = bundle[2+length:]
		}
	}
	if int64(len(entries)) != size {
		log.Fatalf("the bundles have %d entries, but the checkpoint has %d", len(entries), size)
	}
	return entries
}

// Checks the proof that the service itself serves.
func checkServed(l leaf, entry []byte, verifier note.Verifier) {
	owner := ""
	if l.ChamberId != nil {
		owner = fmt.Sprintf("/chambers/%d", *l.ChamberId)
	} else {
		owner = "/agents/" + *l.Did
	}
	text := string(get(fmt.Sprintf("%s/events/%d/tlog-proof", owner, l.EventId)))
	head, signed, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	if lines[0] != "c2sp.org/tlog-proof@v1" || lines[1] != fmt.Sprintf("index %d", l.Index) {
		log.Fatalf("the proof of leaf %d begins with %q", l.Index, lines[:2])
	}
	var proof tlog.RecordProof
	for _, line := range lines[2:] {
		hash, err := base64.StdEncoding.DecodeString(line)
		must(err, "the hash %q", line)
		proof = append(proof, tlog.Hash(*(*[32]byte)(hash)))
	}
	tree := open([]byte(signed), verifier)
	must(tlog.CheckRecord(proof, tree.N, tree.Hash, l.Index, tlog.RecordHash(entry)), "the served proof of leaf %d", l.Index)
}

func main() {
	base = os.Args[1]
	pairs, _ := strconv.Atoi(os.Args[2])
	rounds, _ := strconv.Atoi(os.Args[3])
	var s service
	must(json.Unmarshal(get("/"), &s), "GET /")
	verifier, err := note.NewVerifier(s.Log.CheckpointKey)
	must(err, "the key %s", s.Log.CheckpointKey)
	var before tlog.Tree
	for round := 0; round < rounds; round++ {
		tree := open(get(s.Log.Prefix+"/checkpoint"), verifier)
		// The reader checks each tile that it reads against the root.
		reader := tlog.TileHashReader(tree, tiles{s.Log.Prefix})
		root, err := tlog.TreeHash(tree.N, reader)
		must(err, "the root of size %d", tree.N)
		if root != tree.Hash {
			log.Fatalf("the tiles have the root %s, but the checkpoint has %s", root, tree.Hash)
		}
		if before.N > tree.N {
			log.Fatalf("the size shrank from %d to %d", before.N, tree.N)
		}
		if before.N > 0 {
			proof, err := tlog.ProveTree(tree.N, before.N, reader)
			must(err, "the proof from %d to %d", before.N, tree.N)
			must(tlog.CheckTree(proof, tree.N, tree.Hash, before.N, before.Hash), "size %d extends %d", tree.N, before.N)
		}
		entries := entriesOf(s.Log.Prefix, tree.N)
		var leaves []leaf
		for _, line := range strings.Split(strings.TrimSpace(string(get(fmt.Sprintf("%s/index?limit=%d", s.Log.Prefix, min(tree.N, 10000))))), "\n") {
			var l leaf
			must(json.Unmarshal([]byte(line), &l), "the line %q", line)
			leaves = append(leaves, l)
		}
		for i := 0; i < pairs; i++ {
			n := 1 + rand.Int63n(tree.N)
			index := rand.Int63n(n)
			smaller, err := tlog.TreeHash(n, reader)
			must(err, "the root of size %d", n)
			record, err := tlog.ProveRecord(n, index, reader)
			must(err, "the proof of %d in %d", index, n)
			must(tlog.CheckRecord(record, n, smaller, index, tlog.RecordHash(entries[index])), "leaf %d in %d", index, n)
			extends, err := tlog.ProveTree(tree.N, n, reader)
			must(err, "the proof from %d to %d", n, tree.N)
			must(tlog.CheckTree(extends, tree.N, tree.Hash, n, smaller), "size %d extends %d", tree.N, n)
			if index < int64(len(leaves)) && i%10 == 0 {
				checkServed(leaves[index], entries[index], verifier)
			}
		}
		before = tree
		fmt.Printf("size %d: %d pairs\n", tree.N, pairs)
	}
}

func min(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}
