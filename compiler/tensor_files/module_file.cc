#include "stagecraft/compiler/tensor_files/module_file.h"

#include <cstddef>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/serialize/output-archive.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/libtorch/foreign_failure.h"

namespace stagecraft {
namespace {

using torch::serialize::OutputArchive;

/// ArchiveTree holds an archive for each module. It is filled from the leaves up, since LibTorch
/// copies nested archives.
class ArchiveTree {
 public:
  explicit ArchiveTree(OutputArchive archive) : archive_(std::move(archive)) {}

  /// Returns the tree of the submodule at that path; `*this` for an empty path.
  ArchiveTree& at(std::string_view path) {
    if (path.empty()) {
      return *this;
    }
    const std::size_t dot = path.find('.');
    auto& child = children_[std::string(path.substr(0, dot))];
    if (child == nullptr) {
      child = std::make_unique<ArchiveTree>(OutputArchive(archive_.compilation_unit()));
    }
    return dot == std::string_view::npos ? *child : child->at(path.substr(dot + 1));
  }

  /// Copies a part of a larger storage first, since a file contains the whole storage of a tensor.
  void write(std::string_view name, at::Tensor tensor, bool buffer) {
    if (tensor.storage().nbytes() > tensor.nbytes()) {
      tensor = tensor.detach().clone().set_requires_grad(tensor.requires_grad());
    }
    const std::size_t dot = name.rfind('.');
    ArchiveTree& owner = dot == std::string_view::npos ? *this : at(name.substr(0, dot));
    owner.archive_.write(
        std::string(dot == std::string_view::npos ? name : name.substr(dot + 1)), tensor, buffer);
  }

  OutputArchive& finish() {
    for (auto& [name, child] : children_) {
      archive_.write(name, child->finish());
    }
    return archive_;
  }

 private:
  OutputArchive archive_;
  std::map<std::string, std::unique_ptr<ArchiveTree>> children_;
};

/// ArchiveSink keeps an exception until LibTorch's writer of archives, which does not support
/// exceptions, has returned.
class ArchiveSink {
 public:
  explicit ArchiveSink(WholeFile& file) : file_(file) {}

  std::size_t write(const void* bytes, std::size_t size) {
    if (failure_) {
      return 0;
    }
    try {
      file_.write({static_cast<const char*>(bytes), size});
      return size;
    } catch (...) {
      failure_ = std::current_exception();
      return 0;
    }
  }

  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  WholeFile& file_;
  std::exception_ptr failure_;
};

std::vector<NamedTensor> tensors_of(const auto& named) {
  std::vector<NamedTensor> tensors;
  for (const auto& item : named) {
    if (item.value.defined()) {
      tensors.push_back({item.name, item.value.detach()});
    }
  }
  return tensors;
}

}  // namespace

void write_module(const std::string& path,
                  const ModuleState& state,
                  const std::vector<std::string>& submodules) {
  WholeFile file(path);
  ArchiveSink sink(file);
  try {
    ArchiveTree root{OutputArchive()};
    for (const std::string& module : submodules) {
      root.at(module);
    }
    for (const bool buffer : {false, true}) {
      for (const NamedTensor& t : buffer ? state.buffers : state.parameters) {
        root.write(t.name, t.tensor, buffer);
      }
    }
    root.finish().save_to(
        [&](const void* bytes, std::size_t size) { return sink.write(bytes, size); });
  } catch (const c10::Error& error) {
    sink.rethrow();
    throw foreign_failure(error,
                          Errc::UsageArgument,
                          "LibTorch cannot save these as a module's parameters and buffers");
  }
  sink.rethrow();
  file.publish();
}

ModuleState read_module(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(Errc::UsageFile,
                fmt::format("expected a module's file at '{}', found no regular file", path));
  }
  const at::NoGradGuard no_grad;
  try {
    const torch::jit::Module module = torch::jit::load(path);
    return {.parameters = tensors_of(module.named_parameters()),
            .buffers = tensors_of(module.named_buffers())};
  } catch (const std::exception& error) {
    throw foreign_failure(error,
                          Errc::UsageFile,
                          fmt::format("'{}' is no file of a module, as torch::save(module, path), "
                                      "Trainer::save_module or torch.jit.save write them",
                                      path));
  }
}

}  // namespace stagecraft
