/// Tests graphs of exported programs: unsupported parts are all reported, no denied operator is
/// called, and every kind of argument reaches its operator.
#include "stagecraft/compiler/import/exported/exported_graph.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/tests/compiler/import/made_archive.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::Json;
using testing::MadeArchive;
using testing::node;
using testing::small_archive;
using testing::tensor_argument;
using tests::read_text_file;
using tests::TemporaryFolder;

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
  const TemporaryFolder folder;
  const std::string victim = folder.write("victim", std::string(64, 'v'));
  const Json x = tensor_argument("x");
  const Json size{{"as_int", 16}};
  CHECK_THAT(
      fault_of(
          "torch.ops.aten.from_file.default",
          {{"filename", {{"as_string", victim}}}, {"shared", {{"as_bool", true}}}, {"size", size}}),
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
  CHECK(read_text_file(victim) == std::string(64, 'v'));
  CHECK(fault_of("torch.ops.aten.relu.default", {{"self", x}}).empty());
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

}  // namespace
}  // namespace stagecraft
