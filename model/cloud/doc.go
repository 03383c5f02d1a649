// Package cloud reaches models at Amazon Bedrock, at Google's Vertex AI and at Azure OpenAI: each is an option for a model of the protocol that is
// spoken there.
//
//	anthropic.New("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", cloud.Bedrock(cloud.AWS{Region: "eu-central-1"}))
//	anthropic.New("claude-sonnet-4-5@20250929", cloud.Vertex(cloud.GCP{Project: "my-project"}))
//	gemini.New("gemini-2.5-flash", cloud.Vertex(cloud.GCP{Project: "my-project", Location: "europe-west1"}))
//	openai.New("my-deployment", cloud.Azure(cloud.AzureOpenAI{Endpoint: "https://my-resource.openai.azure.com"}))
//
// What a struct leaves empty is looked for where the cloud's own tools look: in environment variables and in their files. The option never fails and calls nothing; what is missing is an
// error of the model's first call, of class unauthorized or validation.
//
// Each option is a round tripper around the client of the endpoint: it gives the request the cloud's path and form, signs it or puts a token on it, and makes of the answer what
// the protocol knows. The bytes of a conversation are sent from where they lie, as ever. Options that set the key, the base URL or the client come before it; a base URL is then the cloud's in
// its place, and gets the credentials. A request for any other host, and a redirect, gets none: it is not sent.
//
// Tokens are fetched when they are needed, kept until a minute before they end, and fetched once however many calls wait for one; a call that is cancelled stops waiting. A token that the
// cloud refuses before its time is fetched anew, once for a call. No secret stands in an error.
package cloud
