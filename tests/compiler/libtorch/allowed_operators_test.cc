/// Compares the list of allowed operators with LibTorch's registry.
/// tests/golden/compiler/denied_operators.txt holds the operators of LibTorch that the list lacks,
/// each with the reason.
#include "stagecraft/compiler/libtorch/allowed_operators.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/native/count.h"
#include "stagecraft/compiler/native/native_code.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::set<std::string> registry() {
  std::set<std::string> names;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (dispatcher.findSchema(name) && name.name != kNativeOperator &&
        name.name != kDriverOperator && name.name != kCountOperator) {
      names.insert(c10::toString(name));
    }
  }
  return names;
}

/// Returns the reason for each denied operator; a line of the file is "file aten::from_file".
std::map<std::string, std::string> denied() {
  std::ifstream file("tests/golden/compiler/denied_operators.txt");
  std::map<std::string, std::string> reasons;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    std::istringstream words(line);
    std::string reason, name;
    words >> reason >> name;
    CHECK(reasons.emplace(name, reason).second);
  }
  return reasons;
}

c10::OperatorName operator_named(const std::string& text) {
  const std::size_t dot = text.find('.');
  return {text.substr(0, dot), dot == std::string::npos ? "" : text.substr(dot + 1)};
}

TEST_CASE("every operator of LibTorch is allowed, or denied for a reason (AO-1)",
          "[compiler][operators][hostile]") {
  const std::map<std::string, std::string> reasons = denied();
  const std::set<std::string> known{"autograd",
                                    "backward",
                                    "batched",
                                    "crashes",
                                    "device",
                                    "file",
                                    "names",
                                    "namespace",
                                    "nested",
                                    "nokernel",
                                    "optimizer",
                                    "pointer",
                                    "private",
                                    "process",
                                    "quantized",
                                    "resize",
                                    "sparse",
                                    "unchecked"};
  std::set<std::string> seen;
  for (const std::string& name : registry()) {
    const auto reason = reasons.find(name);
    const bool allowed = is_allowed_operator(operator_named(name));
    if (allowed == (reason != reasons.end())) {
      FAIL_CHECK(
          name << (allowed ? " is allowed, and denied" : " is new: allow it, or say why not"));
    }
    if (reason != reasons.end() && !known.contains(reason->second)) {
      FAIL_CHECK(name << " is denied for no known reason: " << reason->second);
    }
    seen.insert(name);
  }
  for (const auto& [name, reason] : reasons) {
    if (!seen.contains(name)) {
      FAIL_CHECK(name << " is denied, and LibTorch does not have it");
    }
  }
}

TEST_CASE("every name on the list is one of LibTorch's", "[compiler][operators]") {
  const std::set<std::string> names = registry();
  std::istringstream words{std::string(internal::kAllowedOperators)};
  std::string word, name;
  int overloads = 0;
  while (words >> word) {
    if (word.ends_with(':')) {
      name = "aten::" + word.substr(0, word.size() - 1);
      continue;
    }
    ++overloads;
    CHECK(names.contains(word == "default" ? name : name + "." + word));
  }
  CHECK(overloads > 1500);
}

TEST_CASE("operators that reach files, memory or the process are on no list",
          "[compiler][operators][hostile]") {
  for (const char* name : {"aten::from_file",
                           "aten::set_.source_Storage",
                           "aten::set_.source_Tensor",
                           "aten::resize_",
                           "aten::segment_reduce",
                           "aten::_index_put_impl_",
                           "aten::record_stream",
                           "aten::max_pool2d_with_indices_backward",
                           "aten::_cudnn_rnn",
                           "aten::quantize_per_tensor",
                           "aten::_sparse_coo_tensor_unsafe",
                           "aten::fbgemm_pack_gemm_matrix_fp16",
                           "profiler::_record_function_exit",
                           "inductor::_reinterpret_tensor",
                           "mkldnn::data_ptr"}) {
    CAPTURE(name);
    const auto why = operator_refusal(operator_named(name), ProgramOrigin::OtherProcess);
    REQUIRE(why);
    CHECK_THAT(*why, ContainsSubstring("a program of another process may call"));
    CHECK(operator_refusal(operator_named(name), ProgramOrigin::ModelFile));
  }
  CHECK_FALSE(is_allowed_in_script("aten::save"));
  CHECK_FALSE(is_allowed_in_script("prim::fork"));
  CHECK(is_allowed_in_script("aten::len"));
  CHECK(is_allowed_in_script("prim::If"));
}

TEST_CASE("an operator of the user's own may stand in a stage, and in no file (AO-2)",
          "[compiler][operators]") {
  CHECK_FALSE(operator_refusal(operator_named("mine::own"), ProgramOrigin::OtherProcess));
  const auto why = operator_refusal(operator_named("mine::own"), ProgramOrigin::ModelFile);
  REQUIRE(why);
  CHECK_THAT(*why, ContainsSubstring("none of LibTorch's"));
  const c10::OperatorName native(std::string(kNativeOperator), "");
  CHECK_FALSE(operator_refusal(native, ProgramOrigin::OtherProcess));
  CHECK(operator_refusal(native, ProgramOrigin::ModelFile));
}

TEST_CASE("an operator that does not check its arguments gets checked ones",
          "[compiler][operators][hostile]") {
  const ArgumentCheck check = argument_check({"aten::embedding_bag", "padding_idx"});
  REQUIRE(check != nullptr);
  const auto with = [](const at::Tensor& offsets) {
    return torch::jit::Stack{at::zeros({4, 2}), at::zeros({3}, at::kLong), offsets};
  };
  CHECK_NOTHROW(check(with(at::zeros({2}, at::kLong))));
  CHECK_THROWS_AS(check(with(at::zeros({3, 0}, at::kLong))), Error);
  CHECK_THROWS_AS(argument_check({"aten::_weight_norm", ""})({at::zeros({0, 3})}), Error);
  const ArgumentCheck range = argument_check({"aten::arange", "start_step"});
  const auto whole = static_cast<std::int64_t>(at::kLong);
  CHECK_THROWS_AS(range({0, 9, 0.1, whole}), Error);
  CHECK_NOTHROW(range({0, 9, 0.1, c10::IValue()}));
  CHECK_NOTHROW(range({9, 0, -1, whole}));
  const auto labels = [](std::int64_t label) {
    return torch::jit::Stack{at::zeros({5, 2, 3}), at::zeros({2, 2}, at::kLong).fill_(label)};
  };
  const ArgumentCheck ctc = argument_check({"aten::ctc_loss", "IntList"});
  CHECK_NOTHROW(ctc(labels(2)));
  CHECK_THROWS_AS(ctc(labels(3)), Error);
  CHECK_THROWS_AS(ctc(labels(-1)), Error);
  const ArgumentCheck repeats = argument_check({"aten::repeat_interleave", "Tensor"});
  CHECK_NOTHROW(repeats({at::zeros({3}, at::kInt)}));
  CHECK_THROWS_AS(repeats({at::zeros({3}, at::kLong).fill_(std::int64_t{1} << 62)}), Error);
  CHECK(argument_check({"aten::add", "Tensor"}) == nullptr);
}

}  // namespace
}  // namespace stagecraft
