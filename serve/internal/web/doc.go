// Package web has what every door over HTTP needs: who may come in, requests that are read strictly, errors that are told alike, and streams of events that end when nobody reads them.
package web
