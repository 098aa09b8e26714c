#include "stagecraft/tools/dag/dag_json.h"

#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/number_text.h"

namespace stagecraft::tools {
namespace {

using Object = nlohmann::ordered_json;

Object numbers_of(const std::vector<Rank>& ranks) {
  Object numbers = Object::array();
  for (const Rank rank : ranks) {
    numbers.push_back(rank.value);
  }
  return numbers;
}

Object ranks_of(const TrainingDag& dag, std::size_t place) {
  return numbers_of(dag.places[place]);
}

Object object_of(const TrainingDag& dag, int number) {
  const DagNode& node = dag.node(number);
  Object object{{"id", number}, {"kind", to_string(node.kind)}, {"name", to_string(dag, number)}};
  const auto add = [&](const char* key, int value) {
    if (value != kNone) {
      object[key] = value;
    }
  };
  add("stage", node.stage.value);
  if (node.microbatch.value != kNone) {
    object["microbatch"] = dag.microbatch_in_schedule(node);
  }
  add("chunk", node.chunk);
  add("peer", node.peer);
  if (computes(node.kind) && !dag.chunk_of(node).operators.empty()) {
    object["operators"] = dag.chunk_of(node).operators;
  }
  if (node.serves) {
    object["serves"] = to_string(*node.serves);
  }
  if (node.kind == DagKind::AllToAll) {
    object["returns"] = node.returns;
  }
  object["ranks"] = ranks_of(dag, static_cast<std::size_t>(node.place));
  if (is_collective(node.kind) && node.bucket != kNone) {
    object["over"] = numbers_of(ranks_of_members(dag, number));
  }
  object["stream"] = dag.streams[static_cast<std::size_t>(node.stream)];
  return object;
}

}  // namespace

std::string dag_json(const IssuedDag& issued, const DagTimeline* times) {
  const TrainingDag& dag = issued.dag;
  Object object{{"microbatches", dag.microbatches},
                {"nodes", Object::array()},
                {"edges", Object::array()},
                {"lists", Object::array()}};
  for (int n = 0; n < dag.size(); ++n) {
    object["nodes"].push_back(object_of(dag, n));
    if (times != nullptr) {
      const DagTimeline::Span& span = times->nodes[static_cast<std::size_t>(n)];
      object["nodes"].back()["start"] = number_json(span.start);
      object["nodes"].back()["end"] = number_json(span.end);
    }
  }
  for (const DagEdge& edge : dag.edges) {
    object["edges"].push_back({{"from", edge.from}, {"to", edge.to}, {"data", edge.data}});
  }
  for (std::size_t place = 0; place < issued.lists.size(); ++place) {
    object["lists"].push_back({{"ranks", ranks_of(dag, place)}, {"nodes", issued.lists[place]}});
    if (times != nullptr) {
      const DagTimeline::List& list = times->lists[place];
      object["lists"].back()["computing"] = number_json(list.computing);
      object["lists"].back()["communicating"] = number_json(list.communicating);
      object["lists"].back()["hidden"] = number_json(list.hidden);
    }
  }
  if (times != nullptr) {
    object["makespan"] = number_json(times->makespan);
  }
  return command_json("dag show", object);
}

}  // namespace stagecraft::tools
