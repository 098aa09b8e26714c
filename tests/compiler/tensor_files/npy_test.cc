/// Tests .npy files: written tensors are read back bit by bit, and other files are refused before
/// any memory is allocated for them (TB-1).
#include "stagecraft/compiler/tensor_files/npy.h"

#include <cstdint>
#include <filesystem>
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

}  // namespace

TEST_CASE("an .npy file is read back as it was written", "[compiler][tensor_files]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.npy";
  const std::vector<std::vector<std::int64_t>> shapes{{}, {5}, {2, 3}, {0, 4}, {1, 2, 3, 2}};
  for (const at::ScalarType dtype : numpy_types()) {
    for (const auto& shape : shapes) {
      const at::Tensor tensor = counted(dtype, shape);
      write_npy(path, tensor);
      CHECK(same_tensor(read_npy(path), tensor));
      CHECK(std::filesystem::file_size(path) % 64 == tensor.nbytes() % 64);
    }
  }
  const at::Tensor turned = counted(at::kFloat, {2, 3}).t();
  write_npy(path, turned);
  CHECK(same_tensor(read_npy(path), turned));
  CHECK_THAT(read_text_file(path),
             ContainsSubstring("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }"));
  // NumPy has no bfloat16: float32 holds each of its numbers.
  const at::Tensor half = at::arange(8).div(3).to(at::kBFloat16);
  write_npy(path, half);
  CHECK(same_tensor(read_npy(path), half.to(at::kFloat)));
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
    CHECK(same_tensor(found, at::full({2}, 0x01010101, at::kInt)));
  }
  std::string columns = npy(R"({ "shape": (2L, 3), 'fortran_order' : True, 'descr': '|u1' , })", 0);
  columns += std::string("\0\1\2\3\4\5", 6);
  CHECK(same_tensor(read(columns), counted(at::kByte, {6}).add(2).reshape({3, 2}).t()));
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
  check_refused_files(
      {{"", {"an .npy file", "0 bytes"}},
       {"PK\x03\x04 a zip file of arrays", {"numpy.save"}},
       {npy(header("<f4", "2,"), 8, 9), {"version 1, 2 or 3", "9"}},
       {std::string("\x93NUMPY\x02\0\xff\xff\xff\x7f", 12), {"inside the file", "2147483647"}},
       {npy(header("<f4", "2,"), 7), {"8 bytes of float32 for shape [2]", "found 7"}},
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
             ContainsSubstring("NumPy has no float8_e5m2"));
}

}  // namespace stagecraft
