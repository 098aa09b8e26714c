/// Tests tensors in files: written tensors are read back bit by bit, and other files are refused
/// before any memory is allocated for them (TB-1, SA-1, WE-1, DF-1).
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/tensor_files/microbatch_files.h"
#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::read_text_file;
using tests::TemporaryFolder;

const std::vector<at::ScalarType> kNumpyTypes{at::kBool,
                                              at::kByte,
                                              at::kChar,
                                              at::kShort,
                                              at::kInt,
                                              at::kLong,
                                              at::kHalf,
                                              at::kFloat,
                                              at::kDouble,
                                              at::kComplexFloat,
                                              at::kComplexDouble};

at::Tensor counted(at::ScalarType dtype, const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    count *= size;
  }
  return at::arange(count).sub(2).to(dtype).reshape(sizes);
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && a.equal(b);
}

/// Returns an .npy file with this header and this many bytes after it.
std::string npy(const std::string& header, std::size_t bytes, char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  text += static_cast<char>(header.size() & 0xffU);
  text += static_cast<char>(header.size() >> 8U);
  if (version > 1) {
    text.append(2, '\0');
  }
  return text + header + std::string(bytes, '\x01');
}

std::string safetensors(const std::string& header, std::size_t bytes) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + std::string(bytes, '\x01');
}

struct Hostile {
  std::string bytes;
  std::vector<std::string> parts;
};

void check_refused(const std::vector<Hostile>& files,
                   const std::function<void(const std::string&)>& read) {
  const TemporaryFolder folder;
  for (const Hostile& file : files) {
    CAPTURE(file.parts);
    const std::string path = folder.write("a", file.bytes);
    const std::string message = refusal([&] { read(path); }, Errc::UsageFile);
    CHECK_THAT(message, ContainsSubstring(path) && ContainsSubstring("expected"));
    for (const std::string& part : file.parts) {
      CHECK_THAT(message, ContainsSubstring(part));
    }
  }
}

}  // namespace

TEST_CASE("an .npy file is read back as it was written", "[compiler][tensor_files]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.npy";
  const std::vector<std::vector<std::int64_t>> shapes{{}, {5}, {2, 3}, {0, 4}, {1, 2, 3, 2}};
  for (const at::ScalarType dtype : kNumpyTypes) {
    for (const auto& shape : shapes) {
      const at::Tensor tensor = counted(dtype, shape);
      write_npy(path, tensor);
      CHECK(same(read_npy(path), tensor));
      CHECK(std::filesystem::file_size(path) % 64 == tensor.nbytes() % 64);
    }
  }
  const at::Tensor turned = counted(at::kFloat, {2, 3}).t();
  write_npy(path, turned);
  CHECK(same(read_npy(path), turned));
  CHECK_THAT(read_text_file(path),
             ContainsSubstring("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"));
  // NumPy has no bfloat16: float32 holds each of its numbers.
  const at::Tensor half = at::arange(8).div(3).to(at::kBFloat16);
  write_npy(path, half);
  CHECK(same(read_npy(path), half.to(at::kFloat)));
}

TEST_CASE("an .npy file may be of any version and order, and say it in any words of Python",
          "[compiler][tensor_files]") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& bytes) {
    return read_npy(folder.write("a.npy", bytes));
  };
  for (const char version : {'\1', '\2', '\3'}) {
    const at::Tensor found =
        read(npy("{'descr':'<i4','fortran_order':False,'shape':(2,)}\n", 8, version));
    CHECK(same(found, at::full({2}, 0x01010101, at::kInt)));
  }
  std::string columns = npy(R"({ "shape": (2L, 3), 'fortran_order' : True, 'descr': '|u1' , })", 0);
  columns += std::string("\0\1\2\3\4\5", 6);
  CHECK(same(read(columns), counted(at::kByte, {6}).add(2).reshape({3, 2}).t()));
  // Any byte but 0 is true, and is 1 in memory.
  const at::Tensor truth =
      read(npy("{'descr':'|b1','fortran_order':False,'shape':()}", 0) + "\x07");
  CHECK(truth.to(at::kByte).item().toInt() == 1);
}

TEST_CASE("a file that is no .npy file is refused with the reason",
          "[compiler][tensor_files][hostile]") {
  const auto header = [](const std::string& type, const std::string& shape) {
    return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({})}}", type, shape);
  };
  check_refused(
      {{"", {"an .npy file", "0 bytes"}},
       {"PK\x03\x04 a zip file of arrays", {"numpy.save"}},
       {npy(header("<f4", "2,"), 8, 9), {"version 1, 2 or 3", "9"}},
       {std::string("\x93NUMPY\x02\0\xff\xff\xff\x7f", 12), {"inside the file", "2147483647"}},
       {npy(header("<f4", "2,"), 7), {"8 bytes of Float for shape [2]", "found 7"}},
       {npy(header("<f4", "2,"), 9), {"8 bytes", "found 9"}},
       {npy(header("<f8", "4611686018427387904, 4"), 8), {"memory can have"}},
       {npy(header("<f8", "0, 4611686018427387904, 4"), 0), {"memory can have"}},
       {npy(header("<f4", "-1,"), 8), {"sizes from 0 on", "-1"}},
       {npy(header("<f4", "99999999999999999999,"), 8), {"a size in the header"}},
       {npy(header(">f4", "2,"), 8), {"little endian", "astype('<f4')"}},
       {npy(header("|V2", "2,"), 4), {"b1, u1", "|V2"}},
       {npy(header("<u8", "2,"), 16), {"astype"}},
       {npy(header("", "2,"), 16), {"astype"}},
       {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8), {"structured"}},
       {npy("{'descr': '<f4', 'shape': (2,)}", 8), {"fortran_order", "not all"}},
       {npy("{'descr': '<f4', 'descr': '<f4'}", 8), {"each once", "'descr'"}},
       {npy("{'descr': '<f4', 'fortran_order': None, 'shape': (2,)}", 8), {"True or False"}},
       {npy("{'descr': '<f4", 8), {"a string"}},
       {npy("[]", 8), {"'{' in the header"}},
       {npy(header("<f4", "2,") + "; import os", 8), {"the end of the header"}}},
      [](const std::string& path) { (void)read_npy(path); });
  const TemporaryFolder folder;
  CHECK_THAT(refusal([&] { (void)read_npy(folder.path() + "/b"); }, Errc::UsageFile),
             ContainsSubstring("expected a file, found none"));
  CHECK_THAT(refusal([&] { (void)read_npy(folder.path()); }, Errc::UsageFile),
             ContainsSubstring("a directory"));
  CHECK_THAT(refusal([&] { write_npy(folder.path() + "/a", at::zeros({2}, at::kFloat8_e5m2)); }),
             ContainsSubstring("NumPy has no Float8_e5m2"));
}

TEST_CASE("a .safetensors file is read back as it was written", "[compiler][tensor_files]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.safetensors";
  std::vector<NamedTensor> tensors;
  for (const at::ScalarType dtype : kNumpyTypes) {
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
    CHECK(same(found[i].tensor, tensors[i].tensor));
  }
  CHECK_THAT(refusal([&] {
               write_safetensors(path, {{"z", at::zeros({2}, at::kComplexDouble)}});
             }),
             ContainsSubstring("no ComplexDouble, which z is; write a folder"));
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
  check_refused(
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

TEST_CASE("weights are taken over whole or not at all", "[compiler][tensor_files][weights]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/" + GENERATE("a", "a.safetensors");
  const at::Tensor tied = counted(at::kFloat, {2, 3});
  const at::Tensor half = counted(at::kFloat, {4}).to(at::kBFloat16);
  const at::Tensor count = at::full({}, 7, at::kLong);
  const auto names = [](const std::vector<at::Tensor>& t) {
    return std::vector<NamedTensor>{{"embed.weight", t[0]}, {"norm", t[1]}, {"head.weight", t[0]}};
  };
  std::vector<NamedTensor> saved = names({tied, half});
  saved.push_back({"count", count});
  write_weights(file, saved);
  write_weights(file, saved);  // overwrites its own file
  const at::Tensor first = at::zeros({2, 3});
  const at::Tensor second = at::zeros({4}, at::kBFloat16);
  const at::Tensor third = at::zeros({}, at::kLong);
  load_weights(file, read_weights(file), names({first, second}), {{"count", third}});
  CHECK(same(first, tied));
  CHECK(same(second, half));
  CHECK(same(third, count));

  // A buffer may be missing, and one name of a tie is enough.
  const at::Tensor again = at::zeros({2, 3});
  load_weights(
      "f", {{"head.weight", tied}, {"norm", half}}, names({again, second}), {{"x", third}});
  CHECK(same(again, tied));

  const at::Tensor untouched = at::zeros({2, 3});
  const std::string message = refusal(
      [&] {
        load_weights("f",
                     {{"embed.weight", counted(at::kFloat, {2, 3})},
                      {"head.weight", counted(at::kFloat, {2, 3}).add(1)},
                      {"count", counted(at::kInt, {2})},
                      {"stranger", tied}},
                     names({untouched, second}),
                     {{"count", third}});
      },
      Errc::UsageFile);
  for (const char* part : {"f: expected the weights of the model, found 4 tensors that do not fit",
                           "head.weight: differs from embed.weight",
                           "norm: missing",
                           "count: expected Long [], found Int [2]",
                           "stranger: the model has none of this name"}) {
    CHECK_THAT(message, ContainsSubstring(part));
  }
  CHECK(untouched.eq(0).all().item().toBool());
}

TEST_CASE("a folder for weights has no weights of another model",
          "[compiler][tensor_files][weights]") {
  const TemporaryFolder folder;
  (void)folder.write("other.weight.npy", "");
  (void)folder.write("notes.txt", "");
  CHECK_THAT(refusal(
                 [&] {
                   write_weights(folder.path(), {{"a", at::zeros({1})}});
                 },
                 Errc::UsageFile),
             ContainsSubstring("'other.weight.npy'; name another folder"));
  for (const std::string& name :
       std::vector<std::string>{"../a", "", ".a", std::string(300, 'a')}) {
    CHECK_THAT(refusal(
                   [&] {
                     write_weights(folder.path() + "/b", {{name, at::zeros({1})}});
                   },
                   Errc::UsageFile),
               ContainsSubstring("NAME.safetensors"));
  }
  CHECK(!std::filesystem::exists(folder.path() + "/b"));
  CHECK_THAT(refusal([&] { (void)read_weights(folder.path() + "/b"); }, Errc::UsageFile),
             ContainsSubstring("a folder of .npy files"));
  const TemporaryFolder empty;
  CHECK_THAT(refusal([&] { (void)read_weights(empty.path()); }, Errc::UsageFile),
             ContainsSubstring("found none"));
}

TEST_CASE("a folder of microbatches is whole and of one shape", "[compiler][tensor_files][data]") {
  const TemporaryFolder folder;
  const auto path = [&](int step, int microbatch, int argument) {
    return fmt::format("{}/step{}_mb{}_arg{}.npy", folder.path(), step, microbatch, argument);
  };
  const auto message = [&] {
    return refusal([&] { const MicrobatchFiles data(folder.path()); }, Errc::UsageFile);
  };
  CHECK_THAT(message(),
             ContainsSubstring("step<k>_mb<j>_arg<i>.npy") && ContainsSubstring("found none"));
  for (int step = 0; step < 2; ++step) {
    for (int m = 0; m < 2; ++m) {
      write_npy(path(step, m, 0), at::full({3, 2}, 10 * step + m, at::kLong));
      write_npy(path(step, m, 1), at::full({}, 0.5 + m, at::kFloat));
    }
  }
  (void)folder.write("notes.txt", "other files may lie there");
  const MicrobatchFiles data(folder.path());
  CHECK(data.steps() == 2);
  CHECK(data.microbatches() == 2);
  CHECK(data.bytes_of_step() == 2 * (3 * 2 * 8 + 4));
  CHECK(data.arguments().at(1).sizes.empty());
  const Batch batch = data.batch(1);
  CHECK(same(batch.at(0).tensor.select(1, 0), at::tensor({10, 10, 10, 11, 11, 11}, at::kLong)));
  CHECK(same(batch.at(1).tensor, at::tensor({0.5, 1.5}, at::kFloat)));

  SECTION("a file is missing") {
    std::filesystem::remove(path(0, 1, 0));
    CHECK_THAT(message(), ContainsSubstring("step0_mb1_arg0.npy: missing"));
  }
  SECTION("the last file is missing") {
    std::filesystem::remove(path(1, 1, 1));
    CHECK_THAT(message(), ContainsSubstring("step1_mb1_arg1.npy: missing"));
  }
  SECTION("a step is missing, far away from the others") {
    write_npy(path(2147483647, 0, 0), at::zeros({1}));
    CHECK_THAT(message(), ContainsSubstring("step2_mb0_arg0.npy: missing"));
  }
  SECTION("a number has zeros in front") {
    (void)folder.write("step01_mb0_arg0.npy", "");
    CHECK_THAT(message(), ContainsSubstring("step01_mb0_arg0.npy: expected a name like"));
  }
  SECTION("a microbatch is of another shape") {
    write_npy(path(1, 0, 0), at::zeros({2, 2}, at::kLong));
    CHECK_THAT(message(),
               ContainsSubstring("step1_mb0_arg0.npy: expected Long [3, 2]") &&
                   ContainsSubstring("found Long [2, 2]"));
  }
  SECTION("a microbatch is of another type") {
    write_npy(path(1, 0, 1), at::zeros({}, at::kDouble));
    CHECK_THAT(message(), ContainsSubstring("found Double []"));
  }
  SECTION("a file changes while it is used") {
    write_npy(path(1, 0, 0), at::zeros({3, 2}));
    CHECK_THAT(refusal([&] { (void)data.batch(1); }, Errc::UsageFile),
               ContainsSubstring("as when the run began"));
  }
  CHECK_THAT(refusal([&] { const MicrobatchFiles none(folder.path() + "/none"); }, Errc::UsageFile),
             ContainsSubstring("expected a folder of data"));
}

}  // namespace stagecraft
