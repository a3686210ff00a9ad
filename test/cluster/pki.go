package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// keyPair is a key and the certificate of its public half.
type keyPair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// identity is whom a certificate is for: a server, by its names and addresses, or a user, by name and groups.
type identity struct {
	name      string
	groups    []string
	dnsNames  []string
	addresses []net.IP
}

// newAuthority makes a certificate authority that lives as long as a cluster.
func newAuthority() (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	template := certificate(identity{name: "test-cluster"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return sign(template, key, template, key)
}

// issue makes a certificate that serves as a server's and as a client's.
func (p keyPair) issue(id identity) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	template := certificate(id)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return sign(template, key, p.cert, p.key)
}

func certificate(id identity) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: id.name, Organization: id.groups},
		DNSNames:     id.dnsNames,
		IPAddresses:  id.addresses,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(7 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func sign(template *x509.Certificate, key *ecdsa.PrivateKey, parent *x509.Certificate, by *ecdsa.PrivateKey) (keyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return keyPair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return keyPair{cert: cert, key: key}, err
}

func (p keyPair) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
}

func (p keyPair) keyPEM() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		panic(err) // it knows every key that this package makes
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// publicPEM is the public key alone.
func (p keyPair) publicPEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(&p.key.PublicKey)
	if err != nil {
		panic(err) // as in keyPEM
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// write puts the pair into the files NAME.crt, NAME.key and NAME.pub of a folder.
func (p keyPair) write(folder, name string) error {
	path := filepath.Join(folder, name)
	return errors.Join(
		os.WriteFile(path+".crt", p.certPEM(), 0o600),
		os.WriteFile(path+".key", p.keyPEM(), 0o600),
		os.WriteFile(path+".pub", p.publicPEM(), 0o600),
	)
}
