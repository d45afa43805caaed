/* cosolve viewer; made from frontend/ by make bundle; sources sha256:1a1160c7e186beb0ce0855ffa1e8a54d0f1aed3bc4e3c141ceea1f87033627ca */
var s=class{};export{s as Scene};
