#include "stagecraft/tests/compiler/import/unpacked_inputs.h"

#include <array>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::testing {
namespace {

namespace fs = std::filesystem;

std::string_view numpy_type(at::ScalarType dtype) {
  constexpr std::array<std::pair<at::ScalarType, std::string_view>, 10> kTypes{
      {{at::kBool, "|b1"},
       {at::kByte, "|u1"},
       {at::kChar, "|i1"},
       {at::kShort, "<i2"},
       {at::kInt, "<i4"},
       {at::kLong, "<i8"},
       {at::kHalf, "<f2"},
       {at::kFloat, "<f4"},
       {at::kDouble, "<f8"},
       {at::kComplexFloat, "<c8"}}};
  for (const auto& [type, name] : kTypes) {
    if (type == dtype) {
      return name;
    }
  }
  throw std::invalid_argument("an input has a type that NumPy lacks");
}

/// Writes what write_npy would, without waiting for the disk.
void write(const fs::path& path, const at::Tensor& tensor) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}\n",
                                   numpy_type(tensor.scalar_type()),
                                   fmt::join(tensor.sizes(), ", "),
                                   tensor.dim() == 1 ? "," : "");
  std::string front("\x93NUMPY\x01\0", 8);
  front += static_cast<char>(header.size() & 0xffU);
  front += static_cast<char>(header.size() >> 8U);
  std::ofstream file(path, std::ios::binary);
  file << front << header;
  file.write(static_cast<const char*>(tensor.const_data_ptr()),
             static_cast<std::streamsize>(tensor.nbytes()));
  if (!file.flush()) {
    throw std::runtime_error("cannot write " + path.string());
  }
}

}  // namespace

std::string unpacked_inputs(const fs::path& model) {
  const fs::path packed = model / "inputs.safetensors";
  if (!fs::exists(packed)) {
    return model.string();
  }
  static const tests::TemporaryFolder all;
  const fs::path folder = fs::path(all.path()) / model.filename();
  if (fs::create_directory(folder)) {
    for (const NamedTensor& input : read_safetensors(packed.string())) {
      write(folder / (input.name + ".npy"), input.tensor);
    }
  }
  return folder.string();
}

}  // namespace stagecraft::testing
