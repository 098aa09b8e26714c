/// Tests archives of torch.export that are damaged, newer, wrong or not supported: each gives an
/// error that says what was found, and none makes the reader allocate by a number in it.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/exported/exported_symbols.h"
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
using testing::tensor_argument;

std::string refused(const MadeArchive& archive) {
  return refusal([&] { (void)archive.read(); }, Errc::UsageFile);
}

/// Holds a file for as long as a test reads it.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& bytes)
      : path_((std::filesystem::temp_directory_path() / fmt::format("{}_{}", ::getpid(), name))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("a file that is no model is refused with its kind", "[compiler][import]") {
  const auto refused_file = [](const std::string& path) {
    return refusal([&] { (void)load_model(path); }, Errc::UsageFile);
  };
  CHECK_THAT(refused_file("/nowhere/model.pt2"), ContainsSubstring("No such file"));
  CHECK_THAT(refused_file("/"), ContainsSubstring("expected a file, found a folder"));
  const TemporaryFile text("text.pt2", "not a model at all");
  CHECK_THAT(refused_file(text.path()), ContainsSubstring("expected a ZIP archive"));
  const TemporaryFile empty("empty.pt2", "");
  CHECK_THAT(refused_file(empty.path()), ContainsSubstring("expected a ZIP archive"));
  MadeArchive other;
  other.records = {{"data.pkl", "x"}};
  std::string bytes = other.bytes();
  for (std::size_t at = 0; (at = bytes.find("models/model.json", at)) != std::string::npos;) {
    bytes.replace(at, 6, "modelx");
  }
  const TemporaryFile pickle("weights.pt", bytes);
  CHECK_THAT(refused_file(pickle.path()), ContainsSubstring("found tensors alone"));
}

TEST_CASE("an archive that ends early or has another byte is refused, or read",
          "[compiler][import]") {
  const std::string whole = small_archive().bytes();
  CHECK(read_exported_model(whole, "whole").unsupported.empty());
  for (std::size_t size = 0; size < whole.size(); size += 97) {
    CAPTURE(size);
    CHECK_THROWS_AS(read_exported_model(std::string_view(whole).substr(0, size), "cut"), Error);
  }
  std::uint32_t random = 1;
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole;
    for (int k = 0; k < 3; ++k) {
      random = random * 1664525 + 1013904223;
      bytes[(random >> 8) % bytes.size()] = static_cast<char>(random >> 3);
    }
    CAPTURE(i);
    try {
      (void)read_exported_model(bytes, "flipped");
    } catch (const Error& error) {
      CHECK((error.code() == Errc::UsageFile || error.code() == Errc::CompileCapture));
    }
  }
}

TEST_CASE("a record that claims more than the file has is refused before it is read",
          "[compiler][import]") {
  const MadeArchive archive = small_archive();
  std::string bytes = archive.bytes();
  // In the directory's entry of the weight, the sizes are 22 bytes before the name.
  const std::string name = "data/weights/weight_";
  const std::size_t entry = bytes.rfind(name);
  const std::size_t start = bytes.rfind("PK\x01\x02", entry);
  for (int i = 0; i < 8; ++i) {
    bytes[start + 20 + static_cast<std::size_t>(i)] = i % 4 == 3 ? '\x7f' : '\xf0';
  }
  CHECK_THAT(refusal([&] { (void)read_exported_model(bytes, "lying"); }, Errc::UsageFile),
             ContainsSubstring("lying"));
  MadeArchive packed = small_archive();
  packed.records["data/weights/weight_3"] = std::string(1 << 16, 'a');
  packed.compressed = true;
  CHECK_THAT(refused(packed), ContainsSubstring("stored uncompressed"));
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
  CHECK_THAT(refused(archive), ContainsSubstring(wrong.said));
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
  CHECK_THAT(refused(deep), ContainsSubstring("more than 32 deep"));
}

TEST_CASE("a tensor outside of its record is refused", "[compiler][import]") {
  struct Case {
    std::string key;
    Json value;
    std::string said;
  };
  const auto ints = [](std::vector<std::int64_t> values) {
    Json list = Json::array();
    for (const std::int64_t v : values) {
      list.push_back({{"as_int", v}});
    }
    return list;
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const auto wrong = GENERATE_COPY(
      Case{"sizes", ints({2, 4}), "reaches beyond its record"},
      Case{"sizes", ints({kHuge, 3}), "reaches beyond its record"},
      Case{"strides", ints({kHuge, kHuge}), "reaches beyond its record"},
      Case{"strides", ints({3}), "2 sizes and 1 strides"},
      Case{"storage_offset", {{"as_int", 1}}, "reaches beyond its record"},
      Case{"storage_offset", {{"as_int", kHuge}}, "reaches beyond its record"},
      Case{
          "sizes", Json::array({{{"as_expr", {{"expr_str", "s0"}}}}, {{"as_int", 3}}}), "symbolic"},
      Case{"dtype", 8, "reaches beyond its record"},
      Case{"dtype", 5, "reaches beyond its record"},
      Case{"layout", 1, "is not dense"});
  CAPTURE(wrong.key, wrong.value.dump());
  MadeArchive archive = small_archive();
  archive.weights["config"]["fc.weight"]["tensor_meta"][wrong.key] = wrong.value;
  CHECK_THAT(refused(archive), ContainsSubstring(wrong.said));

  MadeArchive repeated = small_archive();
  Json& meta = repeated.weights["config"]["fc.weight"]["tensor_meta"];
  meta["sizes"] = ints({std::int64_t{1} << 31, std::int64_t{1} << 31});
  meta["strides"] = ints({0, 0});
  CHECK_THAT(refused(repeated), ContainsSubstring("repeats the bytes"));
}

TEST_CASE("all unsupported parts are reported at once, by node and module", "[compiler][import]") {
  MadeArchive archive = small_archive();
  const at::Tensor x = at::zeros({4, 3});
  archive.value("nonzero", at::zeros({2, 2}, at::kLong));
  const auto out = [](const std::string& name) { return std::vector<Json>{tensor_argument(name)}; };
  archive.add(node(
      "nms", "torch.ops.torchvision.nms.default", {{"dets", tensor_argument("x")}}, out("nms")));
  archive.add(
      node("cond", "torch.ops.higher_order.cond", {{"", tensor_argument("x")}}, out("cond")));
  archive.add(node("nonzero",
                   "torch.ops.aten.nonzero.default",
                   {{"self", tensor_argument("linear")}},
                   out("nonzero")));
  archive.add(node("item",
                   "torch.ops.aten.item.default",
                   {{"self", tensor_argument("mse_loss")}},
                   {{{"as_sym_float", {{"as_name", "item"}}}}}));
  archive.add(node("relu",
                   "torch.ops.aten.relu.default",
                   {{"self", {{"as_custom_obj", {{"name", "o"}, {"class_fqn", "my.Class"}}}}}},
                   out("relu")));
  archive.add(node("gelu",
                   "torch.ops.aten.gelu.default",
                   {{"self", tensor_argument("x")}, {"tanh", {{"as_bool", true}}}},
                   out("gelu")));
  archive.add(node(
      "zeros",
      "torch.ops.aten.zeros.default",
      {{"size", {{"as_ints", {2}}}}, {"device", {{"as_device", {{"type", "mps"}, {"index", 0}}}}}},
      out("zeros")));
  archive.add(node("mul_",
                   "torch.ops.aten.mul_.Tensor",
                   {{"self", tensor_argument("fc.weight")}, {"other", {{"as_int", 2}}}},
                   out("mul_")));
  const ModelFile model = archive.read();
  REQUIRE(model.unsupported.size() == 8);
  const std::string all = refusal(
      [&] {
        (void)compile(model, {.inputs = {x, at::zeros({4, 2})}, .microbatches = 1});
      },
      Errc::CompileCapture);
  for (const char* said :
       {"8 things of this model are not supported",
        "node nms (in body.nms): the operator torchvision::nms is not known",
        "node cond (in body.cond): the control operator cond",
        "node nonzero (in body.nonzero): the shape of the result of aten::nonzero",
        "node item (in body.item): aten::item reads a value",
        "node relu (in body.relu): the argument \"self\" of aten::relu: an object",
        "aten::gelu has no argument \"tanh\"",
        "it names the device mps",
        "the model writes the parameter fc.weight"}) {
    CHECK_THAT(all, ContainsSubstring(said));
  }
}

/// Returns the fault of a node with this target; nothing if it is supported.
std::string fault_of(const std::string& target,
                     const std::vector<std::pair<std::string, Json>>& inputs) {
  MadeArchive archive = small_archive();
  archive.value("made", at::zeros({4, 3}));
  archive.add(node("made", target, inputs, {tensor_argument("made")}));
  const ModelFile model = archive.read();
  return model.unsupported.empty() ? "" : to_string(model.unsupported.front());
}

TEST_CASE("a file calls no operator that opens files, follows pointers or trusts indices (AO-1)",
          "[compiler][import][hostile]") {
  const TemporaryFile victim("victim", std::string(64, 'v'));
  const Json x = tensor_argument("x");
  const Json size{{"as_int", 16}};
  CHECK_THAT(fault_of("torch.ops.aten.from_file.default",
                      {{"filename", {{"as_string", victim.path()}}},
                       {"shared", {{"as_bool", true}}},
                       {"size", size}}),
             ContainsSubstring("aten::from_file is not one that a file may call"));
  CHECK_THAT(fault_of("torch.ops.aten.segment_reduce.default",
                      {{"data", x},
                       {"reduce", {{"as_string", "sum"}}},
                       {"lengths", x},
                       {"unsafe", {{"as_bool", true}}}}),
             ContainsSubstring("aten::segment_reduce is not one"));
  for (const char* name : {"aten.resize_.default",
                           "aten.set_.source_Tensor",
                           "aten._index_put_impl_.default",
                           "aten.max_pool2d_with_indices_backward.default",
                           "aten._foreach_add.Scalar",
                           "inductor._reinterpret_tensor.default",
                           "profiler._record_function_enter.default"}) {
    CAPTURE(name);
    CHECK_THAT(fault_of(std::string("torch.ops.") + name, {{"self", x}}),
               ContainsSubstring("is not one that a file may call"));
  }
  CHECK(std::ifstream(victim.path()).peek() == 'v');
  CHECK(fault_of("torch.ops.aten.relu.default", {{"self", x}}).empty());
}

TEST_CASE("arithmetic on sizes ends no process", "[compiler][import][hostile]") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const auto divide = exported::symbol_function("_operator.floordiv").value();
  CHECK(divide({kLeast, -1}).toInt() == kLeast);
  CHECK(divide({7, -1}).toInt() == -7);
  CHECK(divide({7, -2}).toInt() == -4);
  CHECK_THROWS_AS(divide({7, 0}), Error);
}

TEST_CASE("a number outside of an enumeration reaches no operator", "[compiler][import][hostile]") {
  const Json x = tensor_argument("x");
  const auto with = [&](const std::string& argument, const Json& value) {
    return fault_of("torch.ops.aten.ones_like.default", {{"self", x}, {argument, value}});
  };
  CHECK(with("dtype", {{"as_scalar_type", 7}}).empty());
  CHECK(with("layout", {{"as_layout", 7}}).empty());
  CHECK_THAT(with("dtype", {{"as_int", 9999}}), ContainsSubstring("found the number 9999"));
  CHECK_THAT(with("dtype", {{"as_int", -1}}), ContainsSubstring("found the number -1"));
  CHECK_THAT(with("layout", {{"as_layout", 1}}), ContainsSubstring("of a dense tensor"));
  CHECK_THAT(with("memory_format", {{"as_int", 77}}), ContainsSubstring("found the number 77"));
}

/// Returns the result of a node for x = [[0, 1, 2], [3, 4, 5]], computed as for the program's loss.
at::Tensor made_by(const std::string& target,
                   const std::vector<std::pair<std::string, Json>>& inputs,
                   const at::Tensor& like) {
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  MadeArchive archive;
  archive.parameter("w", at::ones({2, 3}).requires_grad_(true));
  archive.constant("mask", at::arange(3).gt(0));
  archive.user_input("x", x);
  archive.value("y", like);
  archive.add(node("y", target, inputs, {tensor_argument("y")}));
  archive.output("y");
  const ModelFile model = archive.read();
  for (const Unsupported& u : model.unsupported) {
    FAIL_CHECK(to_string(u));
  }
  return model.workload.forward({x}).at(0);
}

TEST_CASE("every kind of argument arrives as the operator takes it", "[compiler][import]") {
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3});
  const Json self = tensor_argument("x");
  const auto same = [](const at::Tensor& found, const at::Tensor& expected) {
    CHECK(found.scalar_type() == expected.scalar_type());
    CHECK(found.equal(expected));
  };
  // A number in the place of a tensor promotes as a number does.
  same(made_by("torch.ops.aten.mul.Tensor", {{"self", self}, {"other", {{"as_float", 2.0}}}}, x),
       x.mul(2));
  same(made_by("torch.ops.aten.mul.Tensor", {{"self", {{"as_int", 3}}}, {"other", self}}, x),
       x.mul(3));
  same(made_by("torch.ops.aten.add.Scalar",
               {{"self", self}, {"other", {{"as_float", "Infinity"}}}, {"alpha", {{"as_int", 1}}}},
               x),
       x.add(std::numeric_limits<double>::infinity()));
  same(made_by("torch.ops.aten.mul.Scalar",
               {{"self", self}, {"other", {{"as_complex", {{"real", 0.0}, {"imag", 1.0}}}}}},
               x.to(at::kComplexFloat)),
       x.mul(c10::complex<double>(0, 1)));
  same(made_by("torch.ops.aten.sum.dim_IntList",
               {{"self", self}, {"dim", {{"as_ints", {1}}}}, {"keepdim", {{"as_bool", true}}}},
               x.sum(1, true)),
       x.sum(1, true));
  same(made_by("torch.ops.aten.view.default",
               {{"self", self}, {"size", {{"as_sym_ints", {{{"as_int", 3}}, {{"as_int", 2}}}}}}},
               x.view({3, 2})),
       x.view({3, 2}));
  same(made_by("torch.ops.aten.sum.default",
               {{"self", self}, {"dtype", {{"as_scalar_type", 8}}}},
               x.sum(at::kDouble)),
       x.sum(at::kDouble));
  same(made_by("torch.ops.aten.clone.default",
               {{"self", self}, {"memory_format", {{"as_memory_format", 1}}}},
               x),
       x);
  same(made_by("torch.ops.aten.ones_like.default",
               {{"self", self},
                {"dtype", {{"as_none", true}}},
                {"layout", {{"as_layout", 7}}},
                {"device", {{"as_device", {{"type", "cuda"}, {"index", 1}}}}}},
               x),
       at::ones({2, 3}));
  same(made_by("torch.ops.aten.cat.default",
               {{"tensors", {{"as_tensors", {self["as_tensor"], self["as_tensor"]}}}}},
               at::zeros({4, 3})),
       at::cat({x, x}));
  same(
      made_by(
          "torch.ops.aten.index.Tensor",
          {{"self", self},
           {"indices",
            {{"as_optional_tensors", {{{"as_none", true}}, {{"as_tensor", {{"name", "mask"}}}}}}}}},
          at::zeros({2, 2})),
      x.slice(1, 1, 3));
  same(made_by("torch.ops.aten.einsum.default",
               {{"equation", {{"as_string", "ij,kj->ik"}}},
                {"tensors", {{"as_tensors", {self["as_tensor"], self["as_tensor"]}}}}},
               at::zeros({2, 2})),
       x.matmul(x.t()));
  same(made_by("torch.ops.aten.clamp.default",
               {{"self", self},
                {"min", {{"as_int", 1}}},
                {"max", {{"as_sym_float", {{"as_float", 3.5}}}}}},
               x),
       x.clamp(1, 3.5));
}

TEST_CASE("a mask that is constant selects, one that is not is refused by name",
          "[compiler][import]") {
  MadeArchive archive;
  const at::Tensor x = at::zeros({3, 3});
  archive.parameter("w", at::ones({3}).requires_grad_(true));
  archive.constant("mask", at::arange(3).gt(0));
  archive.user_input("x", x);
  const auto add = [&](const std::string& name,
                       const std::string& target,
                       const std::vector<std::pair<std::string, Json>>& inputs,
                       const at::Tensor& like) {
    archive.value(name, like);
    archive.add(node(name, "torch.ops.aten." + target, inputs, {tensor_argument(name)}));
  };
  add("mul", "mul.Tensor", {{"self", tensor_argument("x")}, {"other", tensor_argument("w")}}, x);
  add("index",
      "index.Tensor",
      {{"self", tensor_argument("mul")}, {"indices", {{"as_tensors", {{{"name", "mask"}}}}}}},
      at::zeros({2, 3}));
  add("sum", "sum.default", {{"self", tensor_argument("index")}}, at::zeros({}));
  archive.output("sum");
  const at::Tensor batch = at::arange(18, at::kFloat).view({6, 3});
  CHECK_NOTHROW(compile(archive.read(), {.inputs = {batch}, .microbatches = 2}));

  add("gt", "gt.Scalar", {{"self", tensor_argument("x")}, {"other", {{"as_int", 0}}}}, x.gt(0));
  add("masked_select",
      "masked_select.default",
      {{"self", tensor_argument("mul")}, {"mask", tensor_argument("gt")}},
      at::zeros({6}));
  CHECK_THAT(
      refusal([&] { (void)compile(archive.read(), {.inputs = {batch}, .microbatches = 2}); },
              Errc::CompileCapture),
      ContainsSubstring("node masked_select (in body.masked_select): the shape of the result of "
                        "aten::masked_select"));
}

TEST_CASE("a made archive trains, counts its runs, and refuses other shapes",
          "[compiler][import]") {
  const ModelFile model = small_archive().read();
  CHECK(model.written_by == "torch 2.11.0");
  CHECK(model.mode == ModelMode::Either);
  CHECK(model.parameters.at(0).name == "fc.weight");
  CHECK(model.operators ==
        std::map<std::string, int>{{"aten::add_", 1}, {"aten::linear", 1}, {"aten::mse_loss", 1}});
  const at::Tensor x = at::arange(24, at::kFloat).view({8, 3}).div(24);
  const at::Tensor y = at::ones({8, 2});
  const Program program = compile(model, {.inputs = {x, y}, .microbatches = 2});
  CHECK(program.parameter_names() == std::vector<std::string>{"fc.weight", "fc.bias"});
  CHECK(model.buffers.at(0).tensor.item().toInt() == 0);
  CHECK_THAT(refusal(
                 [&] {
                   (void)compile(model, {.inputs = {x, y}, .microbatches = 4});
                 },
                 Errc::CompileShape),
             ContainsSubstring("input 0 (x) of one microbatch: the program was exported for Float "
                               "of shape [4, 3], found Float of shape [2, 3]"));
  CHECK_THAT(refusal([&] { (void)compile(model, {.inputs = {x}, .microbatches = 2}); }),
             ContainsSubstring("takes 2 inputs (x, y), CompileOptions::inputs has 1"));
}

}  // namespace
}  // namespace stagecraft
