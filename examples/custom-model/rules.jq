# A model of few words, in jq: it looks at the thermometer, and heats below 20 degrees.
.messages[-1] as $last
| if $last.role == "user" then {calls: [{name: "thermometer", input: {}}]}
  elif $last.results[0].error then {text: $last.results[0].content}
  elif $last.results[0].name == "thermometer" then
    ($last.results[0].content | tonumber) as $degrees
    | {text: "There are \($degrees) degrees.", calls: [{name: "heating", input: {on: ($degrees < 20)}}]}
  else {text: "The heating is \($last.results[0].content)."}
  end
