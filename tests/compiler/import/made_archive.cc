#include "stagecraft/tests/compiler/import/made_archive.h"

#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>

namespace stagecraft::testing {
namespace {

int schema_dtype(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBool:
      return 12;
    case at::kLong:
      return 5;
    case at::kDouble:
      return 8;
    case at::kComplexFloat:
      return 10;
    default:
      return 7;
  }
}

Json numbers(at::IntArrayRef values) {
  Json result = Json::array();
  for (const std::int64_t v : values) {
    result.push_back({{"as_int", v}});
  }
  return result;
}

std::string bytes_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  return {static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()};
}

}  // namespace

Json tensor_argument(const std::string& name) {
  return {{"as_tensor", {{"name", name}}}};
}

Json node(const std::string& name,
          const std::string& target,
          const std::vector<std::pair<std::string, Json>>& inputs,
          const std::vector<Json>& outputs) {
  Json result{
      {"name", name},
      {"target", target},
      {"inputs", Json::array()},
      {"outputs", Json::array()},
      {"metadata", {{"nn_module_stack", "L__self__,,M;L__self___body,body." + name + ",N"}}},
      {"is_hop_single_tensor_return", nullptr}};
  for (const auto& [argument, value] : inputs) {
    result["inputs"].push_back({{"name", argument}, {"arg", value}, {"kind", 1}});
  }
  for (const Json& output : outputs) {
    result["outputs"].push_back(output);
  }
  return result;
}

Json tensor_meta(const at::Tensor& tensor) {
  return {{"dtype", schema_dtype(tensor.scalar_type())},
          {"sizes", numbers(tensor.sizes())},
          {"requires_grad", tensor.requires_grad()},
          {"device", {{"type", "cpu"}, {"index", nullptr}}},
          {"strides", numbers(tensor.contiguous().strides())},
          {"storage_offset", {{"as_int", 0}}},
          {"layout", 7}};
}

MadeArchive::MadeArchive()
    : program{{"graph_module",
               {{"graph",
                 {{"inputs", Json::array()},
                  {"outputs", Json::array()},
                  {"nodes", Json::array()},
                  {"tensor_values", Json::object()},
                  {"sym_int_values", Json::object()},
                  {"sym_bool_values", Json::object()},
                  {"sym_float_values", Json::object()},
                  {"custom_obj_values", Json::object()},
                  {"is_single_tensor_return", false}}},
                {"signature", {{"input_specs", Json::array()}, {"output_specs", Json::array()}}},
                {"module_call_graph", Json::array()},
                {"metadata", Json::object()}}},
              {"opset_version", {{"aten", 10}}},
              {"range_constraints", Json::object()},
              {"schema_version", {{"major", 8}, {"minor", 17}}},
              {"verifiers", {"TRAINING"}},
              {"torch_version", "2.11.0"},
              {"guards_code", Json::array()}},
      weights{{"config", Json::object()}},
      constants{{"config", Json::object()}},
      records{{"archive_format", "pt2"}, {"archive_version", "0"}, {"byteorder", "little"}} {}

void MadeArchive::value(const std::string& name, const at::Tensor& like) {
  graph()["tensor_values"][name] = tensor_meta(like);
}

void MadeArchive::user_input(const std::string& name, const at::Tensor& like) {
  value(name, like);
  graph()["inputs"].push_back(tensor_argument(name));
  program["graph_module"]["signature"]["input_specs"].push_back(
      {{"user_input", {{"arg", tensor_argument(name)}}}});
}

void MadeArchive::stored(const std::string& fqn,
                         const at::Tensor& tensor,
                         bool is_parameter,
                         const std::string& folder,
                         Json& config,
                         Json spec) {
  const std::string record =
      fmt::format("{}_{}", is_parameter ? "weight" : "tensor", records.size());
  records[folder + record] = bytes_of(tensor);
  config["config"][fqn] = {{"path_name", record},
                           {"is_param", is_parameter},
                           {"use_pickle", false},
                           {"tensor_meta", tensor_meta(tensor)}};
  value(fqn, tensor);
  graph()["inputs"].push_back(tensor_argument(fqn));
  program["graph_module"]["signature"]["input_specs"].push_back(std::move(spec));
}

void MadeArchive::parameter(const std::string& fqn, const at::Tensor& tensor) {
  stored(fqn,
         tensor,
         true,
         "data/weights/",
         weights,
         {{"parameter", {{"arg", {{"name", fqn}}}, {"parameter_name", fqn}}}});
}

void MadeArchive::buffer(const std::string& fqn, const at::Tensor& tensor, bool persistent) {
  stored(
      fqn,
      tensor,
      false,
      persistent ? "data/weights/" : "data/constants/",
      persistent ? weights : constants,
      {{"buffer", {{"arg", {{"name", fqn}}}, {"buffer_name", fqn}, {"persistent", persistent}}}});
}

void MadeArchive::constant(const std::string& fqn, const at::Tensor& tensor) {
  stored(fqn,
         tensor,
         false,
         "data/constants/",
         constants,
         {{"tensor_constant", {{"arg", {{"name", fqn}}}, {"tensor_constant_name", fqn}}}});
}

void MadeArchive::output(const std::string& name) {
  graph()["outputs"].push_back(tensor_argument(name));
  program["graph_module"]["signature"]["output_specs"].push_back(
      {{"user_output", {{"arg", tensor_argument(name)}}}});
}

std::string MadeArchive::bytes() const {
  std::string result;
  {
    caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, std::size_t size) {
      result.append(static_cast<const char*>(data), size);
      return size;
    });
    const auto write = [&](const std::string& name, const std::string& text) {
      writer.writeRecord(name, text.data(), text.size(), compressed);
    };
    for (const auto& [name, text] : records) {
      write(name, text);
    }
    write("data/weights/model_weights_config.json", weights.dump());
    write("data/constants/model_constants_config.json", constants.dump());
    write("models/model.json", program.dump());
    writer.writeEndOfFile();
  }
  return result;
}

ModelFile MadeArchive::read() const {
  const std::string all = bytes();
  return read_exported_model(all, "made.pt2");
}

at::Tensor small_weight() {
  return at::arange(6, at::kFloat).view({2, 3}).div(10).requires_grad_(true);
}

MadeArchive small_archive() {
  const at::Tensor x = at::zeros({4, 3});
  const at::Tensor y = at::zeros({4, 2});
  MadeArchive archive;
  archive.parameter("fc.weight", small_weight());
  archive.parameter("fc.bias", at::zeros({2}).requires_grad_(true));
  archive.buffer("steps", at::zeros({}, at::kLong));
  archive.user_input("x", x);
  archive.user_input("y", y);
  const auto made = [&](const std::string& name, const at::Tensor& like) {
    archive.value(name, like);
    return std::vector<Json>{tensor_argument(name)};
  };
  archive.add(node("add_",
                   "torch.ops.aten.add_.Tensor",
                   {{"self", tensor_argument("steps")}, {"other", {{"as_int", 1}}}},
                   made("add_", at::zeros({}, at::kLong))));
  archive.add(node("linear",
                   "torch.ops.aten.linear.default",
                   {{"input", tensor_argument("x")},
                    {"weight", tensor_argument("fc.weight")},
                    {"bias", tensor_argument("fc.bias")}},
                   made("linear", y)));
  archive.add(node("mse_loss",
                   "torch.ops.aten.mse_loss.default",
                   {{"self", tensor_argument("linear")}, {"target", tensor_argument("y")}},
                   made("mse_loss", at::zeros({}))));
  archive.output("mse_loss");
  return archive;
}

}  // namespace stagecraft::testing
