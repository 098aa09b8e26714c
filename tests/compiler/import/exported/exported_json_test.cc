/// Tests the JSON of an exported program: text that is not what the schema says is refused by its
/// place.
#include "stagecraft/compiler/import/exported/exported_json.h"

#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/tests/compiler/import/made_archive.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::Json;
using testing::MadeArchive;
using testing::node;
using testing::small_archive;

std::string refused_json(const MadeArchive& archive) {
  return refusal([&] { (void)archive.read(); }, Errc::UsageFile);
}

TEST_CASE("JSON that breaks the schema is refused by its place", "[compiler][import]") {
  struct Case {
    std::string pointer;
    Json value;
    std::string said;
  };
  const std::string nodes = "/graph_module/graph/nodes";
  const auto wrong = GENERATE_COPY(
      Case{"/schema_version/major", 9, "expected schema version 8.x, found 9.17 (written by torch"},
      Case{"/schema_version", "8.17", "schema_version: expected an object, found \"8.17\""},
      Case{"/graph_module/graph/inputs", 3, "graph.inputs: expected an array, found 3"},
      Case{nodes + "/1/target", nullptr, "nodes[1].target: expected a string, found null"},
      Case{nodes + "/1/inputs/0/arg", Json::object(), "inputs[0].arg: expected an object with one"},
      Case{nodes + "/1/inputs/0/arg/as_tensor/name", "nobody", "the value nobody is used"},
      Case{nodes + "/1/outputs/0/as_tensor/name", "x", "the value x is made twice"},
      Case{nodes + "/0/inputs/1/arg/as_int", 1.5, "expected an integer of 64 bits, found 1.5"},
      Case{nodes + "/0/inputs/1/arg/as_int", 18446744073709551615ULL, "an integer of 64 bits"},
      Case{"/graph_module/graph/tensor_values/x/dtype", 99, "the number of a dtype, found 99"},
      Case{"/graph_module/graph/tensor_values/x/layout", 0, "a layout, 1 to 7, found 0"},
      Case{"/graph_module/graph/tensor_values/x/sizes/0/as_int", -4, "0 or more, found -4"},
      Case{"/graph_module/signature/input_specs", Json::array(), "the graph's 5 inputs, found 0"},
      Case{"/graph_module/signature/output_specs", Json::array(), "the graph's 1 outputs, found 0"},
      Case{"/graph_module/signature/input_specs/0/parameter/parameter_name",
           "fc.nothing",
           "the program names fc.nothing"});
  CAPTURE(wrong.pointer);
  MadeArchive archive = small_archive();
  archive.program[Json::json_pointer(wrong.pointer)] = wrong.value;
  CHECK_THAT(refused_json(archive), ContainsSubstring(wrong.said));
}

TEST_CASE("text that is no JSON, and graphs that are nested too deep, are refused",
          "[compiler][import]") {
  std::string bytes = small_archive().bytes();
  const std::size_t at = bytes.find("\"graph_module\"");
  bytes[at] = '}';
  CHECK_THAT(refusal([&] { (void)read_exported_model(bytes, "x"); }, Errc::UsageFile),
             ContainsSubstring("models/model.json, this is no JSON"));
  MadeArchive deep = small_archive();
  Json inner = deep.graph();
  for (int i = 0; i < 40; ++i) {
    Json outer = deep.graph();
    outer["nodes"] = Json::array({node("n",
                                       "torch.ops.higher_order.wrap",
                                       {{"", {{"as_graph", {{"name", "g"}, {"graph", inner}}}}}},
                                       {})});
    inner = std::move(outer);
  }
  deep.graph() = inner;
  CHECK_THAT(refused_json(deep), ContainsSubstring("more than 32 deep"));
}

TEST_CASE("keys and kinds of a newer schema are ignored or refused by name", "[compiler][import]") {
  MadeArchive archive = small_archive();
  archive.program["a_new_key"] = Json::array({1, 2});
  archive.program["schema_version"]["minor"] = 99;
  CHECK(archive.read().unsupported.empty());
  archive.nodes()[1]["inputs"][0]["arg"] = {{"as_new_kind", 1}};
  const ModelFile model = archive.read();
  REQUIRE_FALSE(model.unsupported.empty());
  CHECK_THAT(to_string(model.unsupported.front()),
             ContainsSubstring("an argument of kind as_new_kind"));
}

}  // namespace
}  // namespace stagecraft
