#include "stagecraft/compiler/program/computing_type.h"

#include <initializer_list>

#include <ATen/ops/zeros.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

Graph graph_with(std::initializer_list<at::ScalarType> parameters) {
  Graph graph;
  for (const at::ScalarType type : parameters) {
    graph.parameters.push_back({"p", at::zeros({1}, type)});
  }
  graph.nodes.emplace_back();
  return graph;
}

TEST_CASE("a program computes in the type of its parameters", "[compiler]") {
  CHECK(computing_type(graph_with({at::kFloat, at::kFloat})) == "fp32");
  CHECK(computing_type(graph_with({at::kBFloat16})) == "bf16");
  CHECK(computing_type(graph_with({at::kHalf})) == "fp16");
  CHECK(computing_type(graph_with({at::kDouble})).empty());
  CHECK(computing_type(graph_with({at::kFloat, at::kBFloat16})).empty());
  CHECK(computing_type(graph_with({})).empty());
}

TEST_CASE("a program computes in the type of autocast, if some operators ran under it",
          "[compiler]") {
  Graph graph = graph_with({at::kFloat});
  graph.nodes.back().autocast = {.enabled = true, .dtype = at::kBFloat16};
  graph.nodes.emplace_back();
  CHECK(computing_type(graph) == "bf16");
  graph.nodes.back().autocast = {.enabled = true, .dtype = at::kHalf};
  CHECK(computing_type(graph).empty());
}

}  // namespace
}  // namespace stagecraft
