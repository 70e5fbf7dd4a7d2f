// A server of files.
package main

import (
	"log"
	"net/http"
	"os"
)

func main() {
	files := http.FileServer(http.Dir(os.Getenv("SERVER_FOLDER")))
	log.Fatal(http.ListenAndServe(":8080", files))
}
