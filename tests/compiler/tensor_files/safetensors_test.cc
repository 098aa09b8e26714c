/// Tests .safetensors files: written tensors are read back bit by bit, and other files are refused
/// before any memory is allocated for them (TB-1, SA-1).
#include "stagecraft/compiler/tensor_files/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/compiler/tensor_files/tensor_file_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::check_refused_files;
using testing::counted;
using testing::numpy_types;
using testing::same_tensor;
using tests::read_text_file;
using tests::TemporaryFolder;

std::string safetensors(const std::string& header, std::size_t bytes) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + std::string(bytes, '\x01');
}

}  // namespace

TEST_CASE("a .safetensors file is read back as it was written", "[compiler][tensor_files]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.safetensors";
  std::vector<NamedTensor> tensors;
  for (const at::ScalarType dtype : numpy_types()) {
    if (dtype != at::kComplexDouble) {
      tensors.push_back({fmt::format("layers.{}/\u00e4", tensors.size()), counted(dtype, {2, 3})});
    }
  }
  tensors.push_back({"bfloat", at::arange(8).div(3).to(at::kBFloat16).reshape({4, 2}).t()});
  tensors.push_back({"empty", at::zeros({0, 3})});
  tensors.push_back({"one", at::full({}, 1.5)});
  tensors.push_back({"tied", tensors[7].tensor});
  write_safetensors(path, tensors);
  const std::vector<NamedTensor> found = read_safetensors(path);
  REQUIRE(found.size() == tensors.size());
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].name == tensors[i].name);
    CHECK(same_tensor(found[i].tensor, tensors[i].tensor));
  }
  CHECK_THAT(refusal([&] {
               write_safetensors(path, {{"z", at::zeros({2}, at::kComplexDouble)}});
             }),
             ContainsSubstring("no complex128, which z is; write a folder"));
  CHECK(read_safetensors(path).size() == tensors.size());
  // Writing the file again gives the same bytes.
  const std::string first = read_text_file(path);
  write_safetensors(path, found);
  write_safetensors(path, read_safetensors(path));
  CHECK(read_text_file(path).size() == first.size());
}

TEST_CASE("a file that is no .safetensors file is refused with the reason",
          "[compiler][tensor_files][hostile]") {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& at) {
    return fmt::format(
        R"({{"a":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, at);
  };
  const auto two = [](const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],)"
           R"("data_offsets":)" +
           second + "}}";
  };
  check_refused_files(
      {{"abc", {".safetensors file", "3 bytes"}},
       {std::string(8, '\xff') + "{}", {"inside the file", "18446744073709551615"}},
       {safetensors("{", 0), {"JSON"}},
       {safetensors("[]", 0), {"JSON object"}},
       {safetensors(R"({"a":[[[[[[1]]]]]]})", 0), {"deeper"}},
       {safetensors(R"({"a":1})", 0), {"dtype, shape and data_offsets of \"a\""}},
       {safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4),
        {"\"a\""}},
       {safetensors(R"({"a":{},"a":{}})", 0), {"every name once", "\"a\" twice"}},
       {safetensors(one("F8_E4M3", "[4]", "[0,4]"), 4), {"C64", "F8_E4M3"}},
       {safetensors(one("F32", "[-1]", "[0,4]"), 4), {"shape of \"a\""}},
       {safetensors(one("F32", "[1.5]", "[0,4]"), 4), {"shape of \"a\""}},
       {safetensors(one("F32", "{}", "[0,4]"), 4), {"shape of \"a\""}},
       {safetensors(one("F32", "[1]", "[0]"), 4), {"data_offsets of \"a\""}},
       {safetensors(one("F32", "[1]", "[0,8]"), 8), {"4 bytes for \"a\"", "0 to 8"}},
       {safetensors(one("F32", "[1]", "[4,0]"), 8), {"4 bytes for \"a\"", "4 to 0"}},
       {safetensors(one("F32", "[2]", "[0,8]"), 4), {"8 bytes for \"a\"", "among the 4"}},
       {safetensors(one("F64", "[4611686018427387904,4]", "[0,8]"), 8), {"memory can have"}},
       {safetensors(one("F32", "[18446744073709551615]", "[0,8]"), 8), {"sizes from 0 on"}},
       {safetensors(one("U8", "[4]", "[0,4]"), 5), {"4 bytes behind the header", "found 5"}},
       {safetensors(two("[2,6]"), 8), {"\"b\" to begin", "at 4", "found 2"}},
       {safetensors(two("[6,10]"), 10), {"\"b\" to begin", "at 4", "found 6"}},
       {safetensors(two("[0,4]"), 4), {"to begin", "at 4", "found 0"}}},
      [](const std::string& path) { (void)read_safetensors(path); });
}

TEST_CASE("time to read a .safetensors file grows with its tensors, not with their square",
          "[compiler][tensor_files][hostile]") {
  constexpr int kTensors = 60'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i) {
    header += fmt::format(R"({}"layers.{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",",
                          i,
                          i,
                          i + 1);
  }
  const TemporaryFolder folder;
  const std::string path = folder.write("a.safetensors", safetensors(header + "}", kTensors));
  const std::clock_t begin = std::clock();
  CHECK(read_safetensors(path).size() == kTensors);
  CHECK((std::clock() - begin) / CLOCKS_PER_SEC < 5);  // 45 if the time were quadratic
}

}  // namespace stagecraft
