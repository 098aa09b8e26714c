# Replaces the TorchConfig.cmake of a LibTorch without CUDA: it has the same targets, variables and
# layout. (The one of a LibTorch with CUDA works only with a CUDA toolkit.)
get_filename_component(TORCH_INSTALL_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(TORCH_INCLUDE_DIRS "${TORCH_INSTALL_PREFIX}/include" "${TORCH_INSTALL_PREFIX}/include/torch/csrc/api/include")
set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")

foreach(_library IN ITEMS c10 torch_cpu torch)
  add_library(${_library} SHARED IMPORTED)
  set_target_properties(${_library} PROPERTIES
    IMPORTED_CONFIGURATIONS RELEASE
    IMPORTED_LOCATION_RELEASE "${TORCH_INSTALL_PREFIX}/lib/lib${_library}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}"
    INTERFACE_COMPILE_OPTIONS "${TORCH_CXX_FLAGS}")
endforeach()
target_link_libraries(torch_cpu INTERFACE c10)
add_library(torch_library INTERFACE IMPORTED)
target_link_libraries(torch_library INTERFACE torch_cpu)
set(TORCH_LIBRARIES torch_library "${TORCH_INSTALL_PREFIX}/lib/libc10.so")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Torch DEFAULT_MSG TORCH_INSTALL_PREFIX)
